"""What an author may declare: frozen models, no behaviour, no I/O."""
