"""One file per command; nothing but typer is imported before a command runs."""
