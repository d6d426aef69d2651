"""The incident at full size: torch 2.9.1 with its CUDA 12 wheels, and leftovers of CUDA 13 over them."""
