"""What begins runs without a person in a chat: forms, schedules, webhooks and documents."""
