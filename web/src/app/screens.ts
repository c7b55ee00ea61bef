import {
  House,
  Inbox,
  LayoutGrid,
  PenLine,
  Play,
  Settings,
  SquareStack,
  Timer,
} from "lucide-react";
import type { LucideIcon } from "lucide-react";

import type { MeAnswer } from "../protocol/api";
import { can } from "./session";
import type { Role } from "./session";

export interface Screen {
  name: string;
  label: string;
  icon: LucideIcon;
  /** Who has a use for it; without roles, everybody. The server decides what they may do. */
  roles?: readonly Role[];
}

const RUN_ROLES = ["end_user", "developer", "operator"] as const;

const SCREENS: readonly Screen[] = [
  { name: "", label: "Home", icon: House },
  { name: "inbox", label: "Inbox", icon: Inbox, roles: RUN_ROLES },
  { name: "runs", label: "Runs", icon: Play, roles: RUN_ROLES },
  { name: "workflows", label: "Workflows", icon: LayoutGrid },
  { name: "design", label: "Design", icon: PenLine, roles: ["developer"] },
  { name: "board", label: "Board", icon: SquareStack, roles: RUN_ROLES },
  { name: "starts", label: "Starts", icon: Timer, roles: ["developer", "operator"] },
  { name: "settings", label: "Settings", icon: Settings },
];

/** The screens that a caller has a use for, in the order of the rail. */
export function screensOf(me: MeAnswer): Screen[] {
  return SCREENS.filter(({ roles }) => !roles || roles.some((role) => can(me, role)));
}
