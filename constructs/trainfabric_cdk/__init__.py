"""See ARCHITECTURE in docs."""
