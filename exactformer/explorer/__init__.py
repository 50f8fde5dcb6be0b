"""The interactive page: what can be chosen, what is answered, the page itself, a small server."""
