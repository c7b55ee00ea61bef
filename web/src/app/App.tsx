import { Component, lazy, Suspense } from "react";
import type { ComponentType, ReactNode } from "react";

import { Bones, Empty, Problem } from "../parts";
import HomeScreen from "../screens/home";
import RunScreen from "../screens/run";
import styles from "./App.module.css";
import { KeysHelp } from "./keys";
import { Palette } from "./Palette";
import { Rail } from "./Rail";
import { Link, useRoute } from "./url";
import type { Route } from "./url";

const SCREENS: Record<string, ComponentType> = {
  runs: lazy(() => import("../screens/runs")),
  inbox: lazy(() => import("../screens/inbox")),
  workflows: lazy(() => import("../screens/workflows")),
  design: lazy(() => import("../screens/design")),
  board: lazy(() => import("../screens/board")),
  starts: lazy(() => import("../screens/starts")),
  settings: lazy(() => import("../screens/settings")),
};

export function App() {
  const route = useRoute();
  const Screen = screenOf(route);
  // A run has its own state, so another run is another screen.
  const key = Screen === RunScreen ? route.path.join("/") : route.path[0];
  return (
    <div className={styles.app}>
      <a href="#main" className={styles.skip}>
        Skip to the content
      </a>
      <Rail />
      <main id="main" tabIndex={-1} className={styles.main}>
        <ErrorBoundary key={key}>
          <Suspense fallback={<Bones lines={8} />}>
            <Screen />
          </Suspense>
        </ErrorBoundary>
      </main>
      <Palette />
      <KeysHelp />
    </div>
  );
}

function screenOf({ path: [name, part] }: Route): ComponentType {
  if (name === undefined) return HomeScreen;
  if (name === "runs" && part !== undefined) return RunScreen;
  return SCREENS[name] ?? NoScreen;
}

function NoScreen() {
  return (
    <Empty title="There is nothing at this address" action={<Link to="/">Go to Home</Link>}>
      The link may be old, or a letter is missing.
    </Empty>
  );
}

/** Shows what a screen threw in place of the screen; the rest of the page goes on. */
class ErrorBoundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state = { error: null as unknown };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <div className={styles.broken}>
        <Problem error={this.state.error} onRetry={() => this.setState({ error: null })} />
      </div>
    );
  }
}
