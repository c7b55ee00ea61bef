"""The shell of flows: their code is found, called, and given what it works on."""
