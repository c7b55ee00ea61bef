import { use } from "react";

const attack = () => undefined;
const never = new Promise(() => undefined);

const Shown = () => use(never);
