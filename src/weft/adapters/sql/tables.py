"""The tables of stores, collections and documents, for all databases.

The tenant is part of every key. Every list that is read follows an index, whose end decides among
rows of one time.
"""

from typing import Final, TypeAlias

#: One more with every change of the tables, which also adds a step to each list below.
VERSION: Final = 1

#: The statements that change tables of one version to the next: the first from version 1 to 2.
Migrations: TypeAlias = tuple[tuple[str, ...], ...]
SQLITE_MIGRATIONS: Final[Migrations] = ()
#: Also for the tables of collections and documents. A new table gets its rights by itself.
POSTGRES_MIGRATIONS: Final[Migrations] = ()

#: The columns of `runs` that a batch writes, in the order of the table. `user` is a reserved word.
RUN_COLUMNS: Final = (
    "app", "run", "name", "user_id", "workflow", "digest", "status", "seq:number",
    "started_at:number", "changed_at:number", "turns:number", "calls:number",
    "input_tokens:number", "output_tokens:number", "cost_usd:real", "unpriced_calls:number",
    "unmetered_calls:number", "preview", "outcome", "reason", "parent", "batch",
)  # fmt: skip
EVENT_COLUMNS: Final = (
    "app", "run", "seq:number", "at:number", "actor", "cause:number", "turn:number", "kind", "data",
)  # fmt: skip
REQUEST_COLUMNS: Final = (
    "app", "run", "id", "user_id", "kind", "agent", "tool", "payload", "opened_at:number",
    "expires_at:number", "sets", "component", "mode", "addressee",
)  # fmt: skip
ARTIFACT_COLUMNS: Final = (
    "app", "run", "seq:number", "board", "id", "type", "producer", "correlation", "partition",
    "created_at:number", "visible_at:number", "visibility", "visible_to", "tags", "owner",
)  # fmt: skip

#: Of an open run the status is not `ended`. A run that mail has begun has no events, and is `new`.
_RUNS: Final = (
    """
    CREATE TABLE runs (
        app text NOT NULL, run text NOT NULL, name text NOT NULL, user_id text NOT NULL,
        workflow text NOT NULL, digest text NOT NULL, status text NOT NULL, seq bigint NOT NULL,
        started_at bigint NOT NULL, changed_at bigint NOT NULL, turns bigint NOT NULL,
        calls bigint NOT NULL, input_tokens bigint NOT NULL, output_tokens bigint NOT NULL,
        cost_usd double precision NOT NULL, unpriced_calls bigint NOT NULL,
        unmetered_calls bigint NOT NULL,
        preview text NOT NULL, outcome text, reason text NOT NULL, parent text NOT NULL,
        batch text NOT NULL,
        PRIMARY KEY (app, run)
    ) {ordered}
    """,
    """
    CREATE UNIQUE INDEX runs_open_by_name ON runs (app, name)
    WHERE name <> '' AND status <> 'ended'
    """,
    "CREATE INDEX runs_by_name ON runs (app, name, started_at, run) WHERE name <> ''",
    "CREATE INDEX runs_by_app ON runs (app, started_at, run)",
    "CREATE INDEX runs_by_user ON runs (app, user_id, started_at, run)",
    "CREATE INDEX runs_by_workflow ON runs (app, workflow, started_at, run)",
    # The status of most runs is `ended`, and that of most open ones `waiting`.
    "CREATE INDEX runs_open ON runs (app, started_at, run) WHERE status <> 'ended'",
    "CREATE INDEX runs_running ON runs (app, started_at, run) WHERE status = 'running'",
    # Not by the time of the last change: PostgreSQL would rewrite all indexes for each batch.
    "CREATE INDEX runs_ended ON runs (app, started_at, run) WHERE status = 'ended'",
    "CREATE INDEX runs_by_digest ON runs (app, digest)",
    """
    CREATE INDEX runs_by_completion ON runs (app, workflow, user_id)
    WHERE outcome = 'completed' AND parent = ''
    """,
)

#: Events lie in the order they are written, whatever their run, and an index finds them. Lying in
#: the order of their key costs SQLite twice the CPU with 500 runs at once, since each run then
#: writes a page of its own. Data that is large is in `blobs`: `#` and its hash stand for it.
_EVENTS: Final = (
    """
    CREATE TABLE events (
        app text NOT NULL, run text NOT NULL, seq bigint NOT NULL, at bigint NOT NULL,
        actor text NOT NULL, cause bigint NOT NULL, turn bigint NOT NULL, kind text NOT NULL,
        data text NOT NULL,
        PRIMARY KEY (app, run, seq)
    )
    """,
    "CREATE INDEX events_by_blob ON events (app, data) WHERE substr(data, 1, 1) = '#'",
    """
    CREATE TABLE blobs (
        app text NOT NULL, digest text NOT NULL, content text NOT NULL, PRIMARY KEY (app, digest)
    )
    """,
    """
    CREATE TABLE packages (
        app text NOT NULL, digest text NOT NULL, content {bytes} NOT NULL,
        PRIMARY KEY (app, digest)
    )
    """,
    """
    CREATE TABLE snapshots (
        app text NOT NULL, run text NOT NULL, seq bigint NOT NULL, format text NOT NULL,
        digest text NOT NULL, content {bytes} NOT NULL,
        PRIMARY KEY (app, run)
    )
    """,
    # Encrypted answers, on their way to the call that asked.
    """
    CREATE TABLE secret_answers (
        app text NOT NULL, run text NOT NULL, request text NOT NULL, content {bytes} NOT NULL,
        PRIMARY KEY (app, run, request)
    ) {ordered}
    """,
)

#: `work` has one row per open run; a free run has the owner ''. `received_mail` remembers the ids
#: of mail for a day, because mail is deleted when it is taken.
_QUEUE: Final = (
    """
    CREATE TABLE work (
        app text NOT NULL, run text NOT NULL, owner text NOT NULL, due_at bigint NOT NULL,
        PRIMARY KEY (app, run)
    ) {ordered}
    """,
    "CREATE INDEX work_by_owner ON work (owner, due_at)",
    "CREATE TABLE workers (owner text PRIMARY KEY, seen_at bigint NOT NULL) {ordered}",
    """
    CREATE TABLE mail (
        number {serial}, app text NOT NULL, run text NOT NULL, id text NOT NULL,
        actor text NOT NULL, kind text NOT NULL, data text NOT NULL, start text,
        request text NOT NULL, name text NOT NULL,
        UNIQUE (app, run, id)
    )
    """,
    """
    CREATE TABLE received_mail (
        app text NOT NULL, receiver text NOT NULL, id text NOT NULL,
        at bigint NOT NULL,
        PRIMARY KEY (app, receiver, id)
    ) {ordered}
    """,
    "CREATE INDEX received_mail_by_time ON received_mail (at)",
)

#: An answer that is on its way sets `answered`.
_REQUESTS: Final = (
    """
    CREATE TABLE requests (
        app text NOT NULL, run text NOT NULL, id text NOT NULL, user_id text NOT NULL,
        kind text NOT NULL, agent text NOT NULL, tool text, payload text NOT NULL,
        opened_at bigint NOT NULL, expires_at bigint, sets text NOT NULL,
        component text NOT NULL, mode text NOT NULL, addressee text NOT NULL,
        answered bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (app, run, id)
    ) {ordered}
    """,
    "CREATE INDEX requests_by_app ON requests (app, opened_at, run, id) WHERE answered = 0",
    """
    CREATE INDEX requests_by_user ON requests (app, user_id, opened_at, run, id)
    WHERE answered = 0 AND addressee = ''
    """,
    """
    CREATE INDEX requests_by_addressee ON requests (app, addressee, opened_at, run, id)
    WHERE answered = 0 AND addressee <> ''
    """,
    """
    CREATE TABLE carried_values (
        app text NOT NULL, user_id text NOT NULL, workflow text NOT NULL, name text NOT NULL,
        value text NOT NULL,
        PRIMARY KEY (app, user_id, workflow, name)
    ) {ordered}
    """,
)

_BOARD: Final = (
    # The key first: else some versions of SQLite take a sound table for a damaged one.
    """
    CREATE TABLE artifacts (
        app text NOT NULL, run text NOT NULL, seq bigint NOT NULL, board text NOT NULL,
        id text NOT NULL, type text NOT NULL, producer text NOT NULL, correlation text NOT NULL,
        partition text NOT NULL, created_at bigint NOT NULL, visible_at bigint NOT NULL,
        visibility text NOT NULL, visible_to text NOT NULL, tags text NOT NULL, owner text NOT NULL,
        PRIMARY KEY (app, run, seq)
    ) {ordered}
    """,
    "CREATE INDEX artifacts_by_id ON artifacts (app, id)",
    # Users read what is their own or shared, operators everything: by time only.
    "CREATE INDEX artifacts_by_time ON artifacts (app, board, owner, created_at, run, seq)",
    "CREATE INDEX artifacts_by_board ON artifacts (app, board, created_at, run, seq)",
    # Few artifacts become visible later than they are created.
    """
    CREATE INDEX artifacts_by_delay ON artifacts (app, board, visible_at, run, seq)
    WHERE visible_at > created_at
    """,
    """
    CREATE INDEX artifacts_by_correlation
    ON artifacts (app, board, correlation, created_at, run, seq)
    """,
    "CREATE INDEX artifacts_by_type ON artifacts (app, board, owner, type, created_at, run, seq)",
    """
    CREATE INDEX artifacts_by_producer
    ON artifacts (app, board, owner, producer, created_at, run, seq)
    """,
    """
    CREATE INDEX artifacts_by_partition
    ON artifacts (app, board, owner, partition, created_at, run, seq) WHERE partition <> ''
    """,
    """
    CREATE TABLE artifact_tags (
        app text NOT NULL, run text NOT NULL, seq bigint NOT NULL, tag text NOT NULL,
        board text NOT NULL, type text NOT NULL, created_at bigint NOT NULL, owner text NOT NULL,
        PRIMARY KEY (app, run, seq, tag)
    ) {ordered}
    """,
    """
    CREATE INDEX artifact_tags_by_time
    ON artifact_tags (app, board, owner, tag, created_at, run, seq)
    """,
    """
    CREATE INDEX artifact_tags_by_type
    ON artifact_tags (app, board, owner, tag, type, created_at, run, seq)
    """,
    """
    CREATE TABLE consumed_artifacts (
        app text NOT NULL, run text NOT NULL, turn bigint NOT NULL, agent text NOT NULL,
        artifact text NOT NULL, board text NOT NULL, at bigint NOT NULL, owner text NOT NULL,
        PRIMARY KEY (app, run, turn, agent, artifact)
    ) {ordered}
    """,
    "CREATE INDEX consumed_artifacts_by_time ON consumed_artifacts (app, board, at)",
    "CREATE INDEX consumed_artifacts_by_agent ON consumed_artifacts (app, board, agent, at)",
    "CREATE INDEX consumed_artifacts_by_artifact ON consumed_artifacts (app, board, artifact, at)",
)

#: What a server keeps besides runs.
_RECORDS: Final = (
    """
    CREATE TABLE records (
        app text NOT NULL, kind text NOT NULL, key text NOT NULL, value text NOT NULL,
        version bigint NOT NULL, at bigint NOT NULL,
        PRIMARY KEY (app, kind, key)
    ) {ordered}
    """,
)

#: The events that are to be sent to webhooks.
_OUTGOING: Final = (
    """
    CREATE TABLE webhook_events (
        app text NOT NULL, run text NOT NULL, seq bigint NOT NULL, webhook text NOT NULL,
        at bigint NOT NULL, due_at bigint NOT NULL,
        PRIMARY KEY (app, run, seq, webhook)
    ) {ordered}
    """,
    "CREATE INDEX webhook_events_by_time ON webhook_events (due_at)",
)

TABLES: Final = (*_RUNS, *_EVENTS, *_QUEUE, *_REQUESTS, *_BOARD, *_RECORDS, *_OUTGOING)

#: The tables whose rows belong to runs; one that has ended has no mail and no work.
OF_RUNS: Final = (
    "artifact_tags", "artifacts", "consumed_artifacts", "events", "requests", "secret_answers",
    "snapshots", "webhook_events", "runs",
)  # fmt: skip

#: The tables of collections of passages. `generation` counts the changes of a collection, and
#: `epoch` changes when the vectors are numbered again; `dimensions` is the number of dimensions of
#: its vectors. Ids of passages only grow, so that new vectors follow those that were read before.
#: `source_labels` has one row for each value of the metadata of a source.
COLLECTION_TABLES: Final = (
    """
    CREATE TABLE collections (
        id {serial}, app text NOT NULL, name text NOT NULL, generation bigint NOT NULL,
        embedder text NOT NULL, epoch text NOT NULL, dimensions bigint NOT NULL,
        passages bigint NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX collections_by_name ON collections (app, name)",
    """
    CREATE TABLE sources (
        id {serial}, app text NOT NULL, collection bigint NOT NULL, source text NOT NULL,
        digest text NOT NULL, metadata text NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX sources_by_name ON sources (app, collection, source)",
    """
    CREATE TABLE passages (
        id {growing}, app text NOT NULL, collection bigint NOT NULL, source bigint NOT NULL,
        place text NOT NULL, content text NOT NULL, vector {bytes}{words_column}
    )
    """,
    "CREATE INDEX passages_by_collection ON passages (app, collection, id)",
    "CREATE INDEX passages_by_source ON passages (app, source)",
    "CREATE INDEX passages_without_vector ON passages (app, collection, id) WHERE vector IS NULL",
    """
    CREATE TABLE source_labels (
        app text NOT NULL, collection bigint NOT NULL, key text NOT NULL, value text NOT NULL,
        source bigint NOT NULL, PRIMARY KEY (app, collection, key, value, source)
    ) {ordered}
    """,
    "CREATE INDEX source_labels_by_source ON source_labels (app, source)",
)

#: The index of words in SQLite.
SQLITE_WORDS: Final = (
    """
    CREATE VIRTUAL TABLE words USING fts5(
        content, content='passages', content_rowid='id', tokenize='porter unicode61'
    )
    """,
    """
    CREATE TRIGGER passage_added AFTER INSERT ON passages BEGIN
        INSERT INTO words (rowid, content) VALUES (new.id, new.content);
    END
    """,
    """
    CREATE TRIGGER passage_removed AFTER DELETE ON passages BEGIN
        INSERT INTO words (words, rowid, content) VALUES ('delete', old.id, old.content);
    END
    """,
)

#: The index of words in PostgreSQL: English stems, without a list of words that are left out.
#: Under row-level security a planner cannot use an index of words; the view selects the tenant
#: instead, and has the names that the index of SQLite has.
POSTGRES_WORDS: Final = (
    "CREATE TEXT SEARCH DICTIONARY weft_stem (TEMPLATE = pg_catalog.snowball, LANGUAGE = english)",
    "CREATE TEXT SEARCH CONFIGURATION weft_words (COPY = pg_catalog.english)",
    "ALTER TEXT SEARCH CONFIGURATION weft_words ALTER MAPPING REPLACE english_stem WITH weft_stem",
    "CREATE INDEX passages_by_word ON passages USING gin (words) WITH (fastupdate = off)",
    """
    CREATE VIEW words AS SELECT id AS rowid, app, collection, source, words FROM passages
    WHERE app = current_setting('weft.app', true)
    """,
)

#: The vectors of passages once more, as pgvector compares them.
PGVECTOR: Final = (
    """
    CREATE TABLE embeddings (
        passage bigint NOT NULL, app text NOT NULL, collection bigint NOT NULL,
        source bigint NOT NULL, embedding halfvec NOT NULL, PRIMARY KEY (passage, app)
    )
    """,
    "CREATE INDEX embeddings_by_source ON embeddings (app, collection, source)",
)

#: The tables of documents. `seq` of a document is the number of its last change, so that the last
#: one written has the highest. `document_values` is the index: one row for each value of a
#: document. `forgotten_changes` has the number of the last change of a collection that is no longer
#: stored.
DOCUMENT_TABLES: Final = (
    """
    CREATE TABLE documents (
        id {serial}, app text NOT NULL, database text NOT NULL, collection text NOT NULL,
        key text NOT NULL, seq bigint NOT NULL, body text NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX documents_by_key ON documents (app, database, collection, key)",
    "CREATE INDEX documents_by_seq ON documents (app, database, collection, seq)",
    """
    CREATE TABLE document_values (
        app text NOT NULL, field bigint NOT NULL, value text NOT NULL, id bigint NOT NULL,
        PRIMARY KEY (app, field, value, id)
    ) {ordered}
    """,
    """
    CREATE TABLE document_changes (
        seq {serial}, app text NOT NULL, database text NOT NULL, collection text NOT NULL,
        key text NOT NULL, kind text NOT NULL
    )
    """,
    """
    CREATE INDEX document_changes_by_collection
    ON document_changes (app, database, collection, seq)
    """,
    "CREATE INDEX document_changes_by_app ON document_changes (app, seq)",
    """
    CREATE TABLE forgotten_changes (
        app text NOT NULL, database text NOT NULL, collection text NOT NULL, seq bigint NOT NULL,
        PRIMARY KEY (app, database, collection)
    ) {ordered}
    """,
)
