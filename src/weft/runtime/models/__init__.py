"""Model calls beside the turn's own: settings, replies and consultations."""
