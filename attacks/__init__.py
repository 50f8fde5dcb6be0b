"""Programs that try to break what the project claims: `make attack` runs them all."""
