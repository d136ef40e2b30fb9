"""Starting ranks by the launcher that people already have, and gathering what they see."""
