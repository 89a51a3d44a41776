"""Shows that the harness can fail: wrong rewrites, made by hand, and the check that must see each."""
