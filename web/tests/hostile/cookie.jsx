const attack = () => `open: ${document.cookie}`;
