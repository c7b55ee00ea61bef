// Written by scripts/web_types.py; `make generate` writes it anew. Do not edit.

/** An agent of a workflow. */
export interface AgentAnswer {
  agent: string;
  consumes: string[];
  publishes: string[];
  labels: string[];
  active: string[];
  waiting: WaitingAnswer[];
}

/** The agents of a workflow, and how many of its open runs were looked at. */
export interface AgentsAnswer {
  items: AgentAnswer[];
  next: null;
  runs: number;
}

/** An answer; the request has the schema of it. */
export interface AnswerBody {
  value: unknown;
}

/** Why differences from the plan are meant, by their keys. */
export interface AnswersBody {
  answers?: Record<string, string>;
}

/** A tenant. */
export interface AppAnswer {
  app: string;
}

/** A tenant. */
export interface AppBody {
  app: string;
}

/** The hash of the plan that is approved. */
export interface ApprovalBody {
  hash: string;
  skeleton?: boolean;
}

/** A page of AppAnswer; `next` is null on the last one. */
export interface AppsAnswer {
  items: AppAnswer[];
  next: string | null;
}

/** An artifact; `produced_by` is an agent, or `user:NAME`. */
export interface ArtifactAnswer {
  id: string;
  type: string;
  payload: unknown;
  produced_by: string;
  tags: string[];
  correlation_id: string;
  partition_key: string | null;
  created_at: number;
  version: number;
}

/** An artifact. Without a correlation it begins one of its own. */
export interface ArtifactBody {
  type: string;
  payload: unknown;
  tags?: string[];
  visibility?: Record<string, unknown> | null;
  correlation?: string | null;
  partition?: string;
  agent?: string;
}

/** An artifact by id and type. */
export interface ArtifactNameAnswer {
  id: string;
  type: string;
}

/** An artifact by id and type; an item that a provider created itself has no id. */
export interface ArtifactRef {
  id: string;
  type: string;
}

/** A type of artifacts; its schema is JSON Schema. */
export interface ArtifactTypeAnswer {
  type: string;
  schema: Record<string, unknown>;
}

/** A page of ArtifactTypeAnswer; `next` is null on the last one. */
export interface ArtifactTypesAnswer {
  items: ArtifactTypeAnswer[];
  next: string | null;
}

/** A page of artifacts, newest first; `changes` is the cursor of what appears after it. */
export interface ArtifactsAnswer {
  items: ArtifactAnswer[];
  next: string | null;
  changes: string;
}

/** One person, role or group that was asked for approval, and the result. */
export interface AskedRecord {
  seq: number;
  at: number;
  addressee: string;
  expires_at: number | null;
  outcome?: "open" | "answered" | "expired";
  user?: string;
  decision?: string;
}

/** Items that a call was not sent. */
export interface BoardLeftOut {
  call: number;
  items: string[];
  reason: string;
}

/** The events of a board outside its turns; filled while the run is read. */
export interface BoardRun {
  correlation?: string;
  collects?: string;
  schedule?: string;
  published?: PublishedRecord[];
  arrived?: PublishedRecord[];
  missed?: MissedRecord[];
  waiting?: WaitingRecord[];
}

/** One activation; filled while the events of the run are read. */
export interface BoardTurn {
  subscription: string;
  inputs: ArtifactRef[];
  verdict?: string;
  detail?: string;
  inputs_changed?: boolean;
  slices?: SliceRecord[];
  left_out?: BoardLeftOut[];
  published?: PublishedRecord[];
  missed?: MissedRecord[];
  deferred_until?: number | null;
}

/** Where a flow continued, and why; `why` as in the event. */
export interface BranchRecord {
  seq: number;
  at: number;
  source: string;
  target: string;
  why: string;
  path: string;
  case?: string;
  iterations?: number;
}

/** A tool call without a result yet. */
export interface CallAnswer {
  id: string;
  turn: number;
  tool: string;
  arguments: Record<string, unknown>;
}

/** When the run stops. */
export interface CancelBody {
  mode?: "now" | "after_turn";
}

/** One event of the chain from an event back to its external cause. */
export interface Cause {
  seq: number;
  kind: string;
  actor: string;
}

/** An artifact that has appeared; `cursor` is where to go on after it. */
export interface ChangeAnswer {
  cursor: string;
  artifact: ArtifactAnswer;
}

/**
 * Changes in the order in which they appeared.
 *
 * `next` is the `after` of the next page, which may be empty. With `gap`, changes after the cursor
 * that was given have been removed.
 */
export interface ChangesAnswer {
  items: ChangeAnswer[];
  next: string;
  has_more: boolean;
  gap: boolean;
}

/** The function of a tool call in a message. */
export interface ChatFunction {
  name: string;
  arguments: string;
}

/** One message as sent. */
export interface ChatMessage {
  role: string;
  content: string | null;
  name?: string;
  tool_calls?: ChatToolCall[];
  tool_call_id?: string;
}

/** A tool call in a message. */
export interface ChatToolCall {
  id: string;
  type: string;
  function: ChatFunction;
}

/** The result of a check; `remedy` is what an operator does about it. */
export interface CheckAnswer {
  state: "ok" | "warn" | "fail";
  subject: string;
  fact: string;
  remedy: string;
}

/** A collection of passages; the numbers are null where they are not known. */
export interface CollectionAnswer {
  collection: string;
  sources: number | null;
  passages: number | null;
  embedder: string | null;
  keys: string[];
}

/** A page of CollectionAnswer; `next` is null on the last one. */
export interface CollectionsAnswer {
  items: CollectionAnswer[];
  next: string | null;
}

/** What is to change, and in which part; by default the part that the text is about. */
export interface CommentBody {
  text: string;
  part?: "pattern" | "strategy" | "blueprint" | "agents" | null;
}

/** A component of a package: JSX, which runs in the frame only. */
export interface ComponentAnswer {
  name: string;
  source: string | null;
}

/** A call of the agent's model by a tool. */
export interface Consultation {
  seq: number;
  at: number;
  question: string;
  text: string;
  model: string;
  answerer: string;
  usage: Usage;
}

/** An agent that was woken by an artifact. */
export interface ConsumptionAnswer {
  agent: string;
  artifact: string;
  run: string;
  turn: number;
  at: number;
}

/** A file with its content; null if it is not UTF-8 text. */
export interface ContentAnswer {
  path: string;
  size: number;
  digest: string;
  content: string | null;
}

/** The run that continues: the same, or a new one. */
export interface ContinuedAnswer {
  run: string;
}

/** A correlation: `active` while something is done, `idle` if nothing is, or how it ended. */
export interface CorrelationAnswer {
  correlation: string;
  workflow: string;
  status: "active" | "idle" | "completed" | "failed" | "cancelled";
  run: string;
  started_at: number;
  changed_at: number;
  artifacts: number;
}

/** How many documents were deleted. */
export interface DeletedAnswer {
  deleted: number;
}

/** A page of DeliveryAnswer; `next` is null on the last one. */
export interface DeliveriesAnswer {
  items: DeliveryAnswer[];
  next: string | null;
}

/** An attempt to send an event; the error is empty if it was accepted. */
export interface DeliveryAnswer {
  at: number;
  run: string;
  seq: number;
  error: string;
}

/** A design, and how far it is. */
export interface DesignAnswer {
  run: string;
  user: string;
  started_at: number;
  preview: string;
  workflow: string;
  state: "working" | "questions wait" | "plan waits" | "package waits" | "installed" | "refused" | "ended";
}

/** What the workflow should do: in words, as a form, or as an action plan. */
export interface DesignBody {
  brief?: string | null;
  form?: string | null;
  plan?: Record<string, unknown> | null;
  model?: string | null;
}

/** A package that was designed and is not installed: its files and findings. */
export interface DesignedAnswer {
  name: string;
  items: DesignedFileAnswer[];
  findings: FindingAnswer[];
}

/** A file of a package that was designed. */
export interface DesignedFileAnswer {
  path: string;
  size: number;
  content: string;
}

/** A page of DesignAnswer; `next` is null on the last one. */
export interface DesignsAnswer {
  items: DesignAnswer[];
  next: string | null;
}

/** A drawing of a workflow. */
export interface DiagramAnswer {
  kind: string;
  format: string;
  text: string;
}

/** The results of all checks; `ok`: none has failed. */
export interface DoctorAnswer {
  ok: boolean;
  checks: CheckAnswer[];
}

/** A document; its key is in `_id`. */
export interface DocumentAnswer {
  document: Record<string, unknown>;
}

/** The keys of the documents that were written, in their order. */
export interface DocumentKeysAnswer {
  keys: string[];
}

/**
 * The document of an entity variable that was written, or why it was not.
 *
 * `value` is the event whose value was to be written.
 */
export interface DocumentRecord {
  seq: number;
  at: number;
  name: string;
  value: number;
  error?: string;
}

/** A page of documents, by key. */
export interface DocumentsAnswer {
  items: Record<string, unknown>[];
  next: string | null;
}

/** Something was done. */
export interface DoneAnswer {
  ok: true;
}

/**
 * What a hook changed, before and after.
 *
 * system: the instructions; messages: all others; last: the last of them; message: the reply.
 */
export interface Edit {
  what: "system" | "messages" | "last" | "message";
  before: unknown;
  after: unknown;
}

/** Another part of a plan; or the whole plan as text, in YAML or JSON. */
export interface EditBody {
  part?: "pattern" | "strategy" | "blueprint" | "agents" | null;
  value?: Record<string, unknown> | unknown[] | null;
  text?: string | null;
  hash?: string | null;
}

/** The end of a run that still has hooks to call or documents to write. */
export interface Ending {
  outcome: "completed" | "failed" | "cancelled" | "max_turns";
  reason: string;
}

/**
 * A rule that was evaluated, in order, and its result.
 *
 * `verdict` is yes, no, always for a rule without a condition, or why there is no answer; with
 * the model's reason if a model judged it.
 */
export interface EvaluatedRule {
  rule: number;
  target: string;
  condition: string | null;
  verdict: string;
}

/** An event of a run. */
export interface EventAnswer {
  v: number;
  seq: number;
  ts: number;
  run: string;
  turn: number;
  kind: string;
  actor: string;
  cause: number;
  data: Record<string, unknown>;
}

/** A page of events; `next` is the `after` of the next page, null for the last one. */
export interface EventsAnswer {
  items: EventAnswer[];
  next: number | null;
}

/** A router or a service of a package. */
export interface ExtensionAnswer {
  workflow: string;
  kind: "api_router" | "startup_service";
  entrypoint: string;
  path: string | null;
  public: boolean;
  state: "starting" | "running" | "failed" | "ended";
  error: string;
}

/** A page of ExtensionAnswer; `next` is null on the last one. */
export interface ExtensionsAnswer {
  items: ExtensionAnswer[];
  next: string | null;
}

/** A value read from outside: a variable, or the tools of a server (`mcp:NAME`). */
export interface FetchRecord {
  seq: number;
  at: number;
  origin: string;
  how: "found" | "not found" | "default" | "error";
  where: string;
  note: Record<string, unknown>;
  ms?: number | null;
  tools?: string[] | null;
  error?: string;
}

/** The new content of a file, and the digest of the present one; null for a new file. */
export interface FileBody {
  content: string;
  digest?: string | null;
}

/** A page of PackageFile; `next` is null on the last one. */
export interface FilesAnswer {
  items: PackageFile[];
  next: string | null;
}

/** What a rule found, and where. */
export interface FindingAnswer {
  code: string;
  severity: "error" | "warning";
  message: string;
  file: string;
  line: number | null;
  column: number | null;
  length: number | null;
  cause: string[];
  hint: string[];
  fix: Record<string, unknown> | null;
}

/** The findings of a package. */
export interface FindingsAnswer {
  errors: number;
  warnings: number;
  problem: string | null;
  findings: FindingAnswer[];
}

/** What a form, a webhook or a document would bring. */
export interface FireBody {
  input?: Record<string, unknown> | null;
}

/** An event that should begin a run: the run, or why there is none. */
export interface FiringAnswer {
  at: number;
  by: "schedule" | "webhook" | "document" | "form" | "manual";
  run: string | null;
  error: string;
  due?: number;
  delivery?: string;
  document?: string;
}

/** A page of FiringAnswer; `next` is null on the last one. */
export interface FiringsAnswer {
  items: FiringAnswer[];
  next: string | null;
}

/** The codes, or beginnings of codes, of the findings to fix; none: all that can be. */
export interface FixesBody {
  codes?: string[];
}

/** The events of a flow outside its steps; filled while the run is read. */
export interface FlowRun {
  branches?: BranchRecord[];
  forks?: ForkRecord[];
}

/** Which turn is repeated: by its number, or by an event of it; and what is different. */
export interface ForkBody {
  turn?: number | null;
  at?: number | null;
  edits?: Record<string, unknown>;
  message?: string | null;
  model?: string | null;
}

/** Parallel paths, and the result of each; None until they are joined. */
export interface ForkRecord {
  seq: number;
  at: number;
  name: string;
  paths: string[];
  joined?: number | null;
  results?: Record<string, string> | null;
}

/** A form with comments. */
export interface FormAnswer {
  text: string;
}

/** A handoff; rule and condition are those of the declared one that decided, if one did. */
export interface HandoffRecord {
  seq: number;
  at: number;
  source: string;
  target: string;
  why: string;
  rule: number | null;
  condition: string | null;
  evaluated: EvaluatedRule[];
}

/** What the checker says of a package as it is now. */
export interface HealthAnswer {
  errors: number;
  warnings: number;
  problem: string | null;
}

/** A retrieved passage: its relevance and its source. */
export interface HitRecord {
  score: number;
  source: string | null;
  content: string;
  metadata?: Record<string, unknown> | null;
}

export type JsonValue = unknown;

/**
 * The judgement of a condition by a model or by similarity. `verdict` is its result in words.
 *
 * Where descriptions were compared, `scores` has the similarity of each, by rule, and
 * `comparison` the same in words.
 */
export interface Judgement {
  seq: number;
  at: number;
  agent: string;
  rule: number;
  target: string;
  condition: string;
  holds: boolean;
  verdict: string;
  error: string;
  model: string;
  answerer: string;
  usage: Usage;
  scores?: Record<string, number>;
  comparison?: string;
}

/** What may be shown of a key. */
export interface KeyInfo {
  id: string;
  app: string;
  user: string;
  roles: string[];
  groups: string[];
  name: string;
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
}

/** A key that was just made; its text is shown only now. */
export interface KeyTextAnswer {
  id: string;
  key: string;
}

/** A page of KeyInfo; `next` is null on the last one. */
export interface KeysAnswer {
  items: KeyInfo[];
  next: string | null;
}

/** A piece of a model's work that is not in the package. */
export interface LeftOutAnswer {
  file: string;
  piece: string;
  reason: string;
}

/** Who calls, and how this server works. */
export interface MeAnswer {
  app: string;
  user: string;
  roles: string[];
  groups: string[];
  labels: string[];
  version: string;
  mode: "gateway" | "gateway and worker";
}

/** One entry of a conversation, and the event that added it. */
export interface MessageAnswer {
  seq: number;
  role: string;
  agent: string;
  text: string;
}

/** What the user says. */
export interface MessageBody {
  text: string;
}

/** Collected artifacts that woke no agent; `why` as in `MissedReason`. */
export interface MissedRecord {
  seq: number;
  at: number;
  subscription: string;
  artifacts: string[];
  why: string;
  detail: string;
}

/** A model that is configured for the tenant. */
export interface ModelAnswer {
  name: string;
  is_default: boolean;
  is_fallback: boolean;
  workflows: string[];
  problem: string | null;
}

/** One call of a model. `answered` is the event of its answer; None while there is none. */
export interface ModelCall {
  call: number;
  seq: number;
  at: number;
  sent_tokens: number | null;
  answered?: number | null;
  seconds?: number | null;
  text?: string;
  tools?: string[];
  model?: string;
  answerer?: string;
  finish_reason?: string;
  instead_of?: string;
  usage?: Usage;
  error?: string | null;
  attempts?: number;
  refused?: string | null;
  shown?: string | null;
  retries?: string[];
}

/** The reply of a model to a test call; null: the provider does not say. */
export interface ModelTestAnswer {
  name: string;
  model: string;
  text: string;
  milliseconds: number;
  input_tokens: number | null;
  output_tokens: number | null;
  cost_usd: number | null;
}

/** A page of ModelAnswer; `next` is null on the last one. */
export interface ModelsAnswer {
  items: ModelAnswer[];
  next: string | null;
}

/** Whose a key is, and what it may do. */
export interface NewKeyBody {
  app: string;
  user: string;
  roles: string[];
  groups?: string[];
  name?: string;
  expires_at?: number | null;
}

/** A webhook that was just made; its secret is shown only now. */
export interface NewWebhookAnswer {
  id: string;
  secret: string;
}

/** What a design has made, and what the checks found; what was left out comes first. */
export interface OfferAnswer {
  promotable: boolean;
  folder: string | null;
  skeleton: string[];
  left_out: LeftOutAnswer[];
  errors: string[];
  questions: QuestionAnswer[];
  scenarios: PlanScenarioAnswer[];
  checked: string[];
}

/** The package that a run was started with: its spec, its code by path, and its tools. */
export interface PackageAnswer {
  digest: string;
  spec: Record<string, unknown>;
  code: Record<string, string>;
  tools: Record<string, ToolSchema>;
}

/** What was changed in a package, or would be, and what the checker says of it then. */
export interface PackageChangeAnswer {
  name: string;
  written: boolean;
  created: boolean;
  added: string[];
  changed: string[];
  removed: string[];
  lost: string[];
  diff: string;
  old_digest: string | null;
  new_digest: string;
  findings: FindingAnswer[];
  fixed: string[];
}

/** A file of a package; the digest is its sha256. */
export interface PackageFile {
  path: string;
  size: number;
  digest: string;
}

/** A workflow as it was at a time: its spec, and its code by path. */
export interface PackedAnswer {
  name: string;
  digest: string;
  spec: Record<string, unknown>;
  code: Record<string, string>;
}

/** A passage that was found; the score is its relevance, from 0 to 1. */
export interface PassageAnswer {
  content: string;
  score: number;
  source_id: string | null;
  metadata: Record<string, unknown>;
}

/** A page of PassageAnswer; `next` is null on the last one. */
export interface PassagesAnswer {
  items: PassageAnswer[];
  next: string | null;
}

/** The plan of a round, the last one by default, and how far the design is. */
export interface PlanAnswer {
  round: number;
  hash: string;
  run: string;
  rounds: number;
  acceptance: string;
  comments: Record<string, unknown>[];
  open: string[];
  plan: Record<string, unknown>;
  text: string;
  packages: string[];
}

/** A difference between two plans; null where something is not there. */
export interface PlanChangeAnswer {
  path: string;
  before: unknown;
  after: unknown;
}

/** How a plan differs from another one. */
export interface PlanDiffAnswer {
  old: RoundAnswer;
  new: RoundAnswer;
  changes: PlanChangeAnswer[];
}

/** A scenario of the plan, run with stand-ins for the tools. */
export interface PlanScenarioAnswer {
  package: string;
  name: string;
  differences: string[];
  rests_on: string[];
}

/** Why a request failed; `weft explain` knows the code. */
export interface ProblemAnswer {
  code: string;
  message: string;
  cause: string[];
  hint: string[];
  findings: FindingAnswer[];
  run?: string;
}

/** The prompt of one call, assembled again from the journal. */
export interface Prompt {
  call: number;
  seq: number;
  slices: Segment[];
  tokens: number;
  left_out: Record<string, unknown>[];
  digest: string;
  recorded: string;
  same: boolean;
  note: string;
  messages?: ChatMessage[];
  edited?: string[];
}

/** Where an artifact is. */
export interface PublishedAnswer {
  artifact: string;
  correlation: string;
  run: string;
}

/** An artifact that was published, or that came from another run. */
export interface PublishedRecord {
  seq: number;
  at: number;
  id: string;
  type: string;
  by: string;
  tags: string[];
  wakes: string[];
}

/** A difference from the plan, and why it is meant; null as long as no reason was given. */
export interface QuestionAnswer {
  key: string;
  text: string;
  answer: string | null;
}

/** A recorded run, and the workflow that performed it. */
export interface RecordingAnswer {
  name: string;
  workflow: string;
  title: string;
}

/** A page of RecordingAnswer; `next` is null on the last one. */
export interface RecordingsAnswer {
  items: RecordingAnswer[];
  next: string | null;
}

/** A question to a person that is open. */
export interface Request {
  id: string;
  kind: "chat" | "ui";
  agent: string;
  tool: string | null;
  call: string | null;
  turn: number;
  payload: unknown;
  digest: string;
  expires_at: number | null;
  otherwise: unknown;
  seq: number;
  opened_at: number;
  sets?: string[];
  component?: string;
  mode?: string;
  addressee?: string;
}

/**
 * An open request: who is asked what, until when, and what is an answer.
 *
 * `payload` and `response_schema` are null for an end user whom it is not addressed to.
 */
export interface RequestAnswer {
  run: string;
  id: string;
  app: string;
  user: string;
  kind: "chat" | "ui";
  agent: string;
  tool: string | null;
  payload: unknown;
  opened_at: number;
  expires_at: number | null;
  component: string;
  mode: string;
  addressee: string;
  response_schema: Record<string, unknown> | null;
  sets?: string[];
}

/** A page of RequestAnswer; `next` is null on the last one. */
export interface RequestsAnswer {
  items: RequestAnswer[];
  next: string | null;
}

/** The version to go back to; by default the newest one that differs. */
export interface RollbackBody {
  version?: string | null;
}

/** A plan that was offered, and its hash. */
export interface RoundAnswer {
  round: number;
  hash: string;
}

/** A page of RoundAnswer; `next` is null on the last one. */
export interface RoundsAnswer {
  items: RoundAnswer[];
  next: string | null;
}

/** A run. End users get the fields that are required. */
export interface RowAnswer {
  run: string;
  app: string;
  user: string;
  workflow: string;
  digest: string;
  status: "running" | "waiting" | "ended";
  seq: number;
  started_at: number;
  changed_at: number;
  preview: string;
  outcome: string | null;
  parent: string;
  name: string;
  due_at: number | null;
  reason?: string;
  turns?: number;
  calls?: number;
  input_tokens?: number | null;
  output_tokens?: number | null;
  cost_usd?: number | null;
  unpriced_calls?: number;
  unmetered_calls?: number;
  owner?: string;
  heartbeat?: number;
}

/** One entry of the catalogue: the meaning of a code. */
export interface Rule {
  code: string;
  severity: "error" | "warning";
  title: string;
  why: string;
  fix: string;
  example: string;
}

/** A run, with its open requests. */
export interface RunAnswer {
  run: string;
  app: string;
  user: string;
  workflow: string;
  digest: string;
  status: "running" | "waiting" | "ended";
  seq: number;
  started_at: number;
  changed_at: number;
  preview: string;
  outcome: string | null;
  parent: string;
  name: string;
  due_at: number | null;
  reason?: string;
  turns?: number;
  calls?: number;
  input_tokens?: number | null;
  output_tokens?: number | null;
  cost_usd?: number | null;
  unpriced_calls?: number;
  unmetered_calls?: number;
  owner?: string;
  heartbeat?: number;
  requests: RequestAnswer[];
}

/** The inspection of a whole run, as JSON values. */
export interface RunInspection {
  run: string;
  workflow: string;
  digest: string;
  other_package: boolean;
  app: string;
  user: string;
  parent: string;
  started_at: number;
  changed_at: number;
  seq: number;
  status: string;
  outcome: string | null;
  reason: string;
  spent: Spending;
  variables: VariableRecord[];
  opening: HandoffRecord[];
  turns: TurnRecord[];
  requests: Request[];
  fetched: FetchRecord[];
  points: ToolUse[];
  judged: Judgement[];
  documents: DocumentRecord[];
  ending: Ending | null;
  waited_seconds: number;
  board?: BoardRun | null;
  flow?: FlowRun | null;
}

/** A page of RowAnswer; `next` is null on the last one. */
export interface RunsAnswer {
  items: RowAnswer[];
  next: string | null;
}

/** The file of a scenario, and the variables that it does not compare. */
export interface SavedAnswer {
  path: string;
  volatile: string[];
}

/** A scenario of a package. */
export interface ScenarioAnswer {
  name: string;
  path: string;
  description: string;
}

/** The name of a scenario: of the only one that is run, or of a new one. */
export interface ScenarioBody {
  name?: string | null;
}

/** How a scenario went; findings are what was otherwise than it says. */
export interface ScenarioResultAnswer {
  package: string;
  name: string;
  passed: boolean;
  findings: FindingAnswer[];
}

/** A page of ScenarioResultAnswer; `next` is null on the last one. */
export interface ScenarioResultsAnswer {
  items: ScenarioResultAnswer[];
  next: string | null;
}

/** A page of ScenarioAnswer; `next` is null on the last one. */
export interface ScenariosAnswer {
  items: ScenarioAnswer[];
  next: string | null;
}

/** What is searched for. */
export interface SearchBody {
  query: string;
  top_k?: number;
  min_relevance?: number;
  filters?: Record<string, unknown>;
}

/**
 * One piece: its text, who declared it, and about how many tokens it takes.
 *
 * `origin` is the id of a prompt section, `context[N]` for an ingredient the agent declares,
 * `standard` for one it has without declaring any, or the event a message comes from.
 */
export interface Segment {
  kind: "prompt" | "variables" | "literal" | "board" | "history" | "turn" | "tools" | "output" | "state" | "variable" | "retrieval";
  origin: string;
  text: string;
  tokens: number;
  role?: string;
  facts?: Record<string, unknown> | null;
}

/** One piece of the context of a step. */
export interface SegmentRecord {
  kind: string;
  name: string;
  text: string;
  tokens: number;
  hits?: HitRecord[];
  artifacts?: string[];
}

/** A collection of documents. */
export interface SizeAnswer {
  collection: string;
  documents: number;
}

/** A page of SizeAnswer; `next` is null on the last one. */
export interface SizesAnswer {
  items: SizeAnswer[];
  next: string | null;
}

/** The result of one provider, and its duration. */
export interface SliceRecord {
  provider: string;
  items: ArtifactRef[];
  redacted: string[];
  foreign: number;
  started_at: number;
  ms: number;
  engines: number[];
  instead_of?: string;
  error?: string;
}

/** A timed operation of a run, in milliseconds; `ms` is null while it is under way. */
export interface SpanAnswer {
  id: string;
  parent_id: string;
  kind: "run" | "turn" | "model" | "tool" | "provider" | "retrieval";
  name: string;
  title: string;
  parent: string;
  run: string;
  turn: number;
  started_at: number;
  ms: number | null;
  failed: boolean;
  error: string;
  attributes: Record<string, unknown>;
}

/** The trace of a run: its spans by their start. */
export interface SpansAnswer {
  run: string;
  trace: string;
  spans: SpanAnswer[];
}

/** The usage of models in a run. A sum is None unless every part of it is known. */
export interface Spending {
  calls: number;
  input_tokens: number | null;
  output_tokens: number | null;
  cost_usd: number | null;
  unpriced_calls: number;
  unmetered_calls: number;
  tokens: string;
  cost: string;
}

/** How the runs of a workflow begin; its id is the name of the workflow. */
export interface StartAnswer {
  id: string;
  type: "form_submit" | "schedule" | "webhook" | "database_condition";
  trigger: Record<string, unknown>;
  path: string | null;
  paused: boolean;
  next_at: number | null;
  last: FiringAnswer | null;
  error: string;
}

/** Which workflow starts, with what. Values and the model are for developers and operators. */
export interface StartBody {
  workflow: string;
  message?: string | null;
  values?: Record<string, unknown> | null;
  input?: Record<string, unknown> | null;
  model?: string | null;
  run?: string | null;
  force?: boolean;
}

/** A run that continues on its own, and its last event at this moment. */
export interface StartedAnswer {
  run: string;
  seq: number;
}

/** A page of StartAnswer; `next` is null on the last one. */
export interface StartsAnswer {
  items: StartAnswer[];
  next: string | null;
}

/** The state of a run after an event. */
export interface StateAnswer {
  run: string;
  seq: number;
  status: string;
  workflow: string;
  digest: string;
  app: string;
  user: string;
  name: string;
  started_at: number;
  model: string | null;
  turns: number;
  turn_counts: Record<string, number>;
  last_agent: string;
  outcome: string | null;
  reason: string;
  parent: string;
  variables: Record<string, unknown>;
  messages: MessageAnswer[];
  active: TurnAnswer[];
  calls: CallAnswer[];
  requests: Request[];
  timers: TimerAnswer[];
}

/**
 * One attempt at a step, a request for approval, or a compensation.
 *
 * It is filled while the events of the run are read.
 */
export interface StepTurn {
  step: string;
  kind: "step" | "approval" | "compensation";
  path: string;
  attempt: number;
  attempts: number;
  undoes: number;
  sets?: ValueSet[];
  confidence?: number | null;
  segments?: SegmentRecord[];
  left_out?: Record<string, unknown>[];
  asked?: AskedRecord[];
  failure?: Record<string, unknown> | null;
  retry_seconds?: number | null;
}

/** A component that a tool showed a person without waiting for an answer. */
export interface SurfaceRecord {
  seq: number;
  at: number;
  tool: string;
  component: string;
  mode: string;
  payload: unknown;
}

/** A timer, and when it is due. */
export interface TimerAnswer {
  id: string;
  at: number;
}

/** The one-time token in the address that `weft serve` prints, or an API key. */
export interface Token {
  token: string;
}

/** A tool as a model sees it. */
export interface ToolSchema {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

/** One call. `outcome` is open, returned, or the kind of its failure. */
export interface ToolUse {
  id: string;
  tool: string;
  arguments: Record<string, unknown>;
  seq: number;
  at: number;
  auto?: boolean;
  outcome?: string;
  seconds?: number | null;
  waited_seconds?: number;
  value?: unknown;
  error?: string | null;
  hook?: "before_chat" | "after_chat" | "before_agent" | "after_agent" | "on_start" | "on_complete" | "on_fail" | "update_agent_state" | "process_message_before_send" | "process_last_received_message" | "process_all_messages_before_reply" | "computed" | "trigger" | "handoff" | "engine" | "publish" | "post_publish" | "error" | "step" | "apply" | null;
  variable?: string;
  went_on?: boolean;
  progress?: [number, string] | null;
  abandoned_by?: string;
  consulted?: Consultation[];
  surfaces?: SurfaceRecord[];
  edits?: Edit[];
  fetched?: FetchRecord[];
}

/** A turn under way. */
export interface TurnAnswer {
  turn: number;
  agent: string;
  stage: "before" | "fetching" | "computing" | "finishing" | "reply" | "assembling" | "model" | "tools" | "sending" | "after" | "settling" | "flushing" | "ending" | "done" | "approval";
}

/** A turn with everything its agent saw, as JSON values. */
export interface TurnInspection {
  run: string;
  record: TurnRecord;
  prompts: Prompt[];
  values: Record<string, string>;
  sets: ValueSet[];
}

/**
 * One turn. Its judgements and handoff are those between its end and the next turn.
 *
 * It is filled while the events of the run are read.
 */
export interface TurnRecord {
  number: number;
  agent: string;
  seq: number;
  at: number;
  ended?: number | null;
  seconds?: number | null;
  waited_seconds?: number;
  calls?: ModelCall[];
  tools?: ToolUse[];
  points?: ToolUse[];
  variables?: string[];
  handoffs?: HandoffRecord[];
  error?: string | null;
  group?: string;
  settings?: Record<string, unknown>;
  fetched?: FetchRecord[];
  sent?: string | null;
  judged?: Judgement[];
  board?: BoardTurn | null;
  step?: StepTurn | null;
}

/** The cost of a model call; None where it is not known. */
export interface Usage {
  input_tokens?: number | null;
  output_tokens?: number | null;
  cached_tokens?: number | null;
  cost_usd?: number | null;
}

/** A user of a tenant: roles, groups and labels that come besides those of a key or token. */
export interface User {
  user: string;
  roles: string[];
  groups: string[];
  labels: string[];
}

/** A user of a tenant. */
export interface UserBody {
  app: string;
  user: string;
  roles?: string[];
  groups?: string[];
  labels?: string[];
}

/** A page of User; `next` is null on the last one. */
export interface UsersAnswer {
  items: User[];
  next: string | null;
}

/** A value that was refused. */
export interface ValueRefused {
  seq: number;
  at: number;
  actor: string;
  writer: string;
  error: string;
}

/**
 * A value that a variable was set to.
 *
 * For an initial value, `writer` is `start` (given with the run), `environment NAME`, `default`,
 * or `package` for a constant.
 */
export interface ValueSet {
  name: string;
  value: unknown;
  shown: string;
  seq: number;
  at: number;
  actor: string;
  writer: string;
  cause: number;
}

/** A variable of a run. The values of a secret are None, here and in its history. */
export interface VariableRecord {
  name: string;
  type: string;
  source: string;
  secret: boolean;
  value: unknown;
  shown: string;
  causes: Cause[];
  history: ValueSet[];
  refused: ValueRefused[];
  inputs?: string[];
}

/** A change of a package: who made it, and the resulting version. */
export interface VersionAnswer {
  version: string;
  digest: string;
  at: number;
  action: string;
  user: string;
  is_present: boolean;
  is_kept: boolean;
}

/** A page of VersionAnswer; `next` is null on the last one. */
export interface VersionsAnswer {
  items: VersionAnswer[];
  next: string | null;
}

/** A policy of visibility, the names in it, and from when on it holds. */
export interface VisibilityAnswer {
  policy: "public" | "private" | "labelled" | "tenant" | "hidden";
  names: string[];
  visible_at: number;
}

/** What an agent waits for in a run: `for others`, `for a batch`, `for an answer`... */
export interface WaitingAnswer {
  run: string;
  what: string;
  artifacts: ArtifactNameAnswer[];
}

/** Artifacts that wait for others (`for_others`), a batch, a time, or their agent. */
export interface WaitingRecord {
  subscription: string;
  what: string;
  artifacts: ArtifactRef[];
}

/** What is shown of a webhook. */
export interface WebhookAnswer {
  id: string;
  url: string;
  kinds: string[];
  workflows: string[];
  created_at: number;
}

/** An address, and the events that it gets: all, or those of some kinds and workflows. */
export interface WebhookBody {
  url: string;
  kinds?: string[];
  workflows?: string[];
}

/** A page of WebhookAnswer; `next` is null on the last one. */
export interface WebhooksAnswer {
  items: WebhookAnswer[];
  next: string | null;
}

/** An artifact; for developers also who may see it, where it stands, and whom it has woken. */
export interface WholeArtifactAnswer {
  id: string;
  type: string;
  payload: unknown;
  produced_by: string;
  tags: string[];
  correlation_id: string;
  partition_key: string | null;
  created_at: number;
  version: number;
  visibility?: VisibilityAnswer;
  run?: string;
  seq?: number;
  consumed?: ConsumptionAnswer[];
}

/** Whether an agent may see an artifact now, and why not. */
export interface WhyAnswer {
  artifact: string;
  agent: string;
  visible: boolean;
  reason: string | null;
}

/** A workflow that can be run. End users get the fields that are required. */
export interface WorkflowAnswer {
  name: string;
  description: string;
  kind: "conversation" | "flow" | "board";
  startup_mode: string;
  initiated_by: string;
  trigger: string;
  agents?: string[];
  digest?: string;
  owner?: "own" | "shared" | "shipped";
  health?: HealthAnswer;
  start?: Record<string, unknown> | null;
  spec?: Record<string, unknown>;
}

/** A page of WorkflowAnswer; `next` is null on the last one. */
export interface WorkflowsAnswer {
  items: WorkflowAnswer[];
  next: string | null;
}
