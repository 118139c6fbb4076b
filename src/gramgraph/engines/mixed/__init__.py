"""Tables and real variables together."""
