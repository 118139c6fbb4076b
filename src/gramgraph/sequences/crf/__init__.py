"""Conditional random fields: linear chains over sparse text features, and fields on any graph."""
