"""Facts and decisions as frozen dataclasses and enums; imports nothing else of the package."""
