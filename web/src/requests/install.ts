import { can } from "../app/session";
import type { MeAnswer, OfferAnswer, PlanAnswer } from "../protocol/api";
import { ApiProblem, download, get, pathOf, upload } from "../transport/http";

/** Install what a design has made before its question is answered with "approved".
 *
 * Those who may not install only approve: the packages then wait for an operator.
 */
export async function installIfApproved(me: MeAnswer, run: string, value: unknown): Promise<void> {
  const { promotion } = Object(value) as { promotion?: unknown };
  if (promotion !== "approved" || !can(me, "operator") || !can(me, "developer")) return;
  const design = `/api/plans${pathOf(run)}`;
  const plan = await get<PlanAnswer>(design).catch((problem: unknown) => {
    // Another workflow may have an answer of this name.
    if (problem instanceof ApiProblem && problem.status === 404) return null;
    throw problem;
  });
  if (!plan) return;
  const { promotable } = await get<OfferAnswer>(`${design}/offer`);
  if (!promotable) throw new Error("The package cannot be installed yet: its design says why, under Files.");
  for (const name of plan.packages) {
    const zip = await download(`${design}/bundle.zip?package=${encodeURIComponent(name)}`);
    await upload("/api/packages?dry_run=false&force=false", zip);
  }
}
