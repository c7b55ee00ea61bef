"""Collections of passages in files on this machine, searched by meaning and by keywords."""
