"""The incident in miniature: small wheels that collide, built on the spot, in a throwaway environment."""
