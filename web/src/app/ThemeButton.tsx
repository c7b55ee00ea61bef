import { Monitor, Moon, Sun } from "lucide-react";

import styles from "./Rail.module.css";
import { setTheme, useTheme } from "./theme";
import type { Theme } from "./theme";

const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const ICONS = { system: Monitor, light: Sun, dark: Moon };

/** Goes through the themes: as the system, light, dark. */
export function ThemeButton() {
  const theme = useTheme();
  const Icon = ICONS[theme];
  return (
    <button
      type="button"
      className={styles.entry}
      title={`Theme: ${theme}`}
      onClick={() => setTheme(NEXT[theme])}
    >
      <Icon />
      Theme<span className="unseen">: {theme}</span>
    </button>
  );
}
