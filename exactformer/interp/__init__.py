"""Look inside a model and intervene: taps, a cache of every iteration, patches."""
