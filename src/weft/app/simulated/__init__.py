"""What simulated runs are made of: made-up worlds, stand-ins for code, and coverage."""
