// Sets the chosen theme before the first paint. Without a choice the system decides.
(function () {
  try {
    var theme = localStorage.getItem("weft.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch (error) {
    // Storage is not allowed: the system decides.
  }
})();
