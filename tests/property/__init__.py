"""Properties over generated inputs."""
