import { useQuery } from "@tanstack/react-query";

import type { RequestsAnswer } from "../protocol/api";
import { get } from "../transport/http";
import { Mark } from "./Mark";
import styles from "./Rail.module.css";
import { screensOf } from "./screens";
import type { Screen } from "./screens";
import { useMe } from "./session";
import { ThemeButton } from "./ThemeButton";
import { Link, useRoute } from "./url";

/** The screens, on the left; on a phone, below. */
export function Rail() {
  const screens = screensOf(useMe());
  return (
    <nav aria-label="Screens" className={styles.rail}>
      <Link to="/" aria-label="Weft" className={styles.sign}>
        <Mark />
      </Link>
      <ul>
        {screens.map((screen) => (
          <li key={screen.name} className={styles[`at-${screen.name}`]}>
            <Entry screen={screen} />
          </li>
        ))}
        <li className={styles["at-theme"]}>
          <ThemeButton />
        </li>
      </ul>
    </nav>
  );
}

function Entry({ screen }: { screen: Screen }) {
  const isCurrent = (useRoute().path[0] ?? "") === screen.name;
  const Icon = screen.icon;
  return (
    <Link
      to={`/${screen.name}`}
      aria-current={isCurrent ? "page" : undefined}
      className={styles.entry}
    >
      <Icon />
      {screen.label}
      {screen.name === "inbox" && <OpenRequests />}
    </Link>
  );
}

function OpenRequests() {
  const requests = useQuery({
    queryKey: ["requests", "me"],
    queryFn: () => get<RequestsAnswer>("/api/requests?for=me"),
    refetchInterval: 15_000,
  });
  const count = requests.data?.items.length ?? 0;
  if (count === 0) return null;
  return (
    <span className={styles.count}>
      {count}
      {requests.data?.next && "+"}
      <span className="unseen"> open</span>
    </span>
  );
}
