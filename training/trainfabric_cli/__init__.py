"""The `trainfabric` command: thin, each command imports what it needs when it runs."""
