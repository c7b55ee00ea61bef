const attack = () => {
  alert("Your password?");
  print();
  return confirm("Sure?") || prompt("Your password?") ? "open" : "closed";
};
