"""Which of the shipped packages are boards, and which are flows."""

BOARDS = ("NewsDesk",)
FLOWS = ("OrderProcessing",)
