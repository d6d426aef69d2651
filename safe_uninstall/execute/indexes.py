"""Where pip is told to look: the variables for the places that the user configured, for pip or for uv."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from safe_uninstall.execute.pip_settings import PipSettings

_PLACES = frozenset({"PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_NO_INDEX"})
"""Variables that say where; the others say how."""

Settings = Mapping[str, str]
"""Variables of pip."""


@dataclass(slots=True, kw_only=True)
class Indexes:
    """The places of one user."""

    pip: PipSettings
    uv: Settings = field(default_factory=dict)
    """Variables of pip for what the user configured uv for; none: for nothing."""
    prefer_uv: bool = False
    """Whether the environment is uv's, so that uv's places come first."""
    no_index: bool = False
    """Whether no index may be asked."""

    def to_restore(self) -> list[Settings]:
        """Return the settings with which to look for a build that is known, one after the other."""
        return self._all(self.pip.for_command("download"))

    def to_install(self, command: str, *, choosing: bool = False) -> Settings:
        """Return the settings with which to fetch what is new: those of the first place alone.

        Args:
            command: of pip: ``install`` or ``download``.
            choosing: whether pip chooses versions.
        """
        settings = self.pip.for_command(command, choosing=choosing)
        places = self._all(settings)
        return places[0] if places else {**_without_places(settings), "PIP_NO_INDEX": "1"}

    def nowhere_else(self) -> Settings:
        """Return the settings with which pip looks only where its options and requirements say."""
        return {**_without_places(self.pip.for_command("download")), "PIP_NO_INDEX": "1"}

    def _all(self, settings: Settings) -> list[Settings]:
        of_uv = {**_without_places(settings), **self.uv}
        if _PLACES.isdisjoint(settings):
            found: list[Settings] = [of_uv]
        elif not self.uv:
            found = [settings]
        else:
            found = [of_uv, settings] if self.prefer_uv else [settings, of_uv]
        if not self.no_index:
            return found
        # Directories and pages of wheels that are configured are no index.
        return [{**item, "PIP_NO_INDEX": "1"} for item in found if item.get("PIP_FIND_LINKS")]


def _without_places(settings: Settings) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name not in _PLACES}
