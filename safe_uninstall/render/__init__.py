"""Plans and findings as text and documents; returns strings, prints nothing."""
