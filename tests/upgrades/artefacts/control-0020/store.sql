






CREATE TABLE public.agent_tokens (
    project_id uuid NOT NULL,
    token_id uuid NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    person_id uuid NOT NULL,
    mac bytea NOT NULL,
    shown text NOT NULL,
    created_ms bigint NOT NULL,
    ends_ms bigint,
    used_ms bigint,
    revoked_ms bigint,
    calls_a_day bigint,
    rows_a_day bigint,
    CONSTRAINT agent_tokens_kind_check CHECK ((kind = ANY (ARRAY['live'::text, 'test'::text])))
);



CREATE TABLE public.api_keys (
    org_id uuid NOT NULL,
    key_id uuid NOT NULL,
    project_id uuid,
    person_id uuid NOT NULL,
    name text NOT NULL,
    scopes text NOT NULL,
    shown text NOT NULL,
    lookup bytea NOT NULL,
    created_ms bigint NOT NULL,
    ends_ms bigint,
    used_ms bigint,
    revoked_ms bigint
);



CREATE TABLE public.approval_claims (
    project_id uuid NOT NULL,
    query_id uuid NOT NULL,
    approval_id uuid,
    shape_grant_id uuid,
    answer text NOT NULL,
    claimed_ms bigint NOT NULL
);



CREATE TABLE public.approval_tokens (
    project_id uuid NOT NULL,
    token_id uuid NOT NULL,
    name text NOT NULL,
    lookup bytea NOT NULL,
    shown text NOT NULL,
    created_ms bigint NOT NULL,
    used_ms bigint,
    revoked_ms bigint
);



CREATE TABLE public.approval_votes (
    project_id uuid NOT NULL,
    approval_id uuid NOT NULL,
    person_id uuid NOT NULL,
    vote text NOT NULL,
    reviewer_group text,
    note text,
    voted_ms bigint NOT NULL,
    CONSTRAINT approval_votes_vote_check CHECK ((vote = ANY (ARRAY['approve'::text, 'deny'::text])))
);



CREATE TABLE public.approvals (
    project_id uuid NOT NULL,
    approval_id uuid NOT NULL,
    grant_key bytea NOT NULL,
    query_id uuid NOT NULL,
    gateway_id uuid,
    database_name text NOT NULL,
    token_id uuid,
    requester uuid,
    agent_name text,
    agent_version text,
    sql text NOT NULL,
    intent text,
    statement_type text,
    write_class text,
    fingerprint text,
    tables_touched text DEFAULT '[]'::text NOT NULL,
    policy_hash text,
    preview text,
    status text DEFAULT 'pending'::text NOT NULL,
    asked_ms bigint NOT NULL,
    expires_ms bigint NOT NULL,
    decided_by uuid,
    decided_ms bigint,
    note text,
    rows_at_most bigint,
    claimed_by uuid,
    claimed_ms bigint,
    outcome text,
    outcome_rows bigint,
    expiry_told boolean DEFAULT false NOT NULL,
    CONSTRAINT approvals_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'denied'::text, 'expired'::text, 'consumed'::text, 'executed'::text])))
);



CREATE TABLE public.approvals_pending (
    project_id uuid NOT NULL,
    grant_key bytea NOT NULL,
    approval_id uuid NOT NULL,
    token_id uuid,
    expires_ms bigint NOT NULL
);



CREATE TABLE public.audit_20261122 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    query_id uuid NOT NULL,
    ts bigint NOT NULL,
    received_ms bigint NOT NULL,
    event_type text NOT NULL,
    tenant_id text NOT NULL,
    database_name text NOT NULL,
    agent_name text,
    agent_version text,
    has_intent boolean NOT NULL,
    token_id uuid,
    payload text NOT NULL,
    schema_version integer NOT NULL,
    commitment bytea NOT NULL,
    unproved boolean NOT NULL,
    keys bigint[] NOT NULL
);



CREATE TABLE public.audit_20261123 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    query_id uuid NOT NULL,
    ts bigint NOT NULL,
    received_ms bigint NOT NULL,
    event_type text NOT NULL,
    tenant_id text NOT NULL,
    database_name text NOT NULL,
    agent_name text,
    agent_version text,
    has_intent boolean NOT NULL,
    token_id uuid,
    payload text NOT NULL,
    schema_version integer NOT NULL,
    commitment bytea NOT NULL,
    unproved boolean NOT NULL,
    keys bigint[] NOT NULL
);



CREATE TABLE public.audit_20261124 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    query_id uuid NOT NULL,
    ts bigint NOT NULL,
    received_ms bigint NOT NULL,
    event_type text NOT NULL,
    tenant_id text NOT NULL,
    database_name text NOT NULL,
    agent_name text,
    agent_version text,
    has_intent boolean NOT NULL,
    token_id uuid,
    payload text NOT NULL,
    schema_version integer NOT NULL,
    commitment bytea NOT NULL,
    unproved boolean NOT NULL,
    keys bigint[] NOT NULL
);



CREATE TABLE public.audit_20261125 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    query_id uuid NOT NULL,
    ts bigint NOT NULL,
    received_ms bigint NOT NULL,
    event_type text NOT NULL,
    tenant_id text NOT NULL,
    database_name text NOT NULL,
    agent_name text,
    agent_version text,
    has_intent boolean NOT NULL,
    token_id uuid,
    payload text NOT NULL,
    schema_version integer NOT NULL,
    commitment bytea NOT NULL,
    unproved boolean NOT NULL,
    keys bigint[] NOT NULL
);



CREATE TABLE public.audit_20261126 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    query_id uuid NOT NULL,
    ts bigint NOT NULL,
    received_ms bigint NOT NULL,
    event_type text NOT NULL,
    tenant_id text NOT NULL,
    database_name text NOT NULL,
    agent_name text,
    agent_version text,
    has_intent boolean NOT NULL,
    token_id uuid,
    payload text NOT NULL,
    schema_version integer NOT NULL,
    commitment bytea NOT NULL,
    unproved boolean NOT NULL,
    keys bigint[] NOT NULL
);



CREATE TABLE public.audit_20261127 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    query_id uuid NOT NULL,
    ts bigint NOT NULL,
    received_ms bigint NOT NULL,
    event_type text NOT NULL,
    tenant_id text NOT NULL,
    database_name text NOT NULL,
    agent_name text,
    agent_version text,
    has_intent boolean NOT NULL,
    token_id uuid,
    payload text NOT NULL,
    schema_version integer NOT NULL,
    commitment bytea NOT NULL,
    unproved boolean NOT NULL,
    keys bigint[] NOT NULL
);



CREATE TABLE public.audit_20261128 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    query_id uuid NOT NULL,
    ts bigint NOT NULL,
    received_ms bigint NOT NULL,
    event_type text NOT NULL,
    tenant_id text NOT NULL,
    database_name text NOT NULL,
    agent_name text,
    agent_version text,
    has_intent boolean NOT NULL,
    token_id uuid,
    payload text NOT NULL,
    schema_version integer NOT NULL,
    commitment bytea NOT NULL,
    unproved boolean NOT NULL,
    keys bigint[] NOT NULL
);



CREATE TABLE public.audit_20261129 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    query_id uuid NOT NULL,
    ts bigint NOT NULL,
    received_ms bigint NOT NULL,
    event_type text NOT NULL,
    tenant_id text NOT NULL,
    database_name text NOT NULL,
    agent_name text,
    agent_version text,
    has_intent boolean NOT NULL,
    token_id uuid,
    payload text NOT NULL,
    schema_version integer NOT NULL,
    commitment bytea NOT NULL,
    unproved boolean NOT NULL,
    keys bigint[] NOT NULL
);



CREATE TABLE public.audit_checkpoints (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    size bigint NOT NULL,
    note text NOT NULL,
    received_ms bigint NOT NULL
);



CREATE TABLE public.audit_days (
    day integer NOT NULL,
    made_ms bigint NOT NULL,
    dropped_ms bigint
);



CREATE TABLE public.audit_details_20261122 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    details text,
    salt bytea
);



CREATE TABLE public.audit_details_20261123 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    details text,
    salt bytea
);



CREATE TABLE public.audit_details_20261124 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    details text,
    salt bytea
);



CREATE TABLE public.audit_details_20261125 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    details text,
    salt bytea
);



CREATE TABLE public.audit_details_20261126 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    details text,
    salt bytea
);



CREATE TABLE public.audit_details_20261127 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    details text,
    salt bytea
);



CREATE TABLE public.audit_details_20261128 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    details text,
    salt bytea
);



CREATE TABLE public.audit_details_20261129 (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    seq bigint NOT NULL,
    details text,
    salt bytea
);



CREATE TABLE public.audit_findings (
    project_id uuid NOT NULL,
    finding_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    kind text NOT NULL,
    body text NOT NULL,
    found_ms bigint NOT NULL,
    seen_by uuid,
    seen_ms bigint
);



CREATE TABLE public.audit_heads (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    first_seq bigint NOT NULL,
    size bigint NOT NULL,
    root bytea NOT NULL,
    frontier bytea NOT NULL,
    ack bytea,
    received_ms bigint NOT NULL,
    verified_ms bigint,
    superseded_ms bigint,
    fork_seen_by uuid
);



CREATE TABLE public.audit_tiles (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    instance uuid NOT NULL,
    tile bigint NOT NULL,
    leaves bytea NOT NULL
);



CREATE TABLE public.bundle_heads (
    project_id uuid NOT NULL,
    version bigint NOT NULL
);



CREATE TABLE public.bundles (
    project_id uuid NOT NULL,
    version bigint NOT NULL,
    policy_version integer,
    envelope bytea NOT NULL,
    sha256 bytea NOT NULL,
    reason text NOT NULL,
    issued_ms bigint NOT NULL
);



CREATE TABLE public.catalog_heads (
    project_id uuid NOT NULL,
    database_name text NOT NULL,
    sha256 bytea NOT NULL,
    changed_ms bigint NOT NULL
);



CREATE TABLE public.catalogs (
    project_id uuid NOT NULL,
    database_name text NOT NULL,
    sha256 bytea NOT NULL,
    gateway_id uuid NOT NULL,
    format integer NOT NULL,
    body bytea NOT NULL,
    taken_ms bigint NOT NULL
);



CREATE TABLE public.challenges (
    challenge bytea NOT NULL,
    kind text NOT NULL,
    person_id uuid,
    ends_ms bigint NOT NULL
);



CREATE TABLE public.databases (
    project_id uuid NOT NULL,
    database_id uuid NOT NULL,
    name text NOT NULL,
    sealed_url bytea,
    host_shown text,
    checked_ms bigint,
    check_result text,
    created_ms bigint NOT NULL
);



CREATE TABLE public.directory (
    kind text NOT NULL,
    lookup bytea NOT NULL,
    org_id uuid NOT NULL,
    project_id uuid,
    id uuid NOT NULL,
    CONSTRAINT directory_kind_check CHECK ((kind = ANY (ARRAY['api_key'::text, 'agent_token'::text, 'enrol_token'::text, 'gateway'::text, 'approval_token'::text, 'project'::text])))
);



CREATE TABLE public.engines (
    project_id uuid NOT NULL,
    replica uuid NOT NULL,
    gateway_id uuid,
    state text NOT NULL,
    address text,
    started_ms bigint,
    used_ms bigint,
    failures integer DEFAULT 0 NOT NULL,
    next_try_ms bigint
);



CREATE TABLE public.enrol_tokens (
    project_id uuid NOT NULL,
    token_id uuid NOT NULL,
    lookup bytea NOT NULL,
    name text NOT NULL,
    made_by uuid,
    made_ms bigint NOT NULL,
    ends_ms bigint NOT NULL,
    used_ms bigint,
    gateway_id uuid
);



CREATE TABLE public.gateway_runs (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    run uuid NOT NULL,
    superseded_ms bigint NOT NULL
);



CREATE TABLE public.gateway_states (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    since_ms bigint NOT NULL,
    state text NOT NULL,
    bundle_version bigint,
    reason text
);



CREATE TABLE public.gateways (
    project_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    name text NOT NULL,
    public_key bytea NOT NULL,
    key_id text NOT NULL,
    engine_replica uuid,
    enrolled_ms bigint NOT NULL,
    standing text DEFAULT 'active'::text NOT NULL,
    standing_note text,
    run uuid,
    run_ts_ms bigint DEFAULT 0 NOT NULL,
    run_n bigint DEFAULT 0 NOT NULL,
    run_digest bytea,
    seen_ms bigint,
    state text,
    state_reason text,
    version text,
    bundle_version bigint,
    bundle_since_ms bigint,
    features text DEFAULT '[]'::text NOT NULL,
    reported_databases text DEFAULT '[]'::text NOT NULL,
    public_urls text DEFAULT '[]'::text NOT NULL,
    CONSTRAINT gateways_standing_check CHECK ((standing = ANY (ARRAY['active'::text, 'cut'::text, 'duplicated'::text, 'retired'::text])))
);



CREATE TABLE public.leases (
    name text NOT NULL,
    owner uuid NOT NULL,
    until_ms bigint NOT NULL,
    fence bigint NOT NULL
);



CREATE TABLE public.mcp_clients (
    project_id uuid NOT NULL,
    client_key bytea NOT NULL,
    client text NOT NULL,
    person_id uuid,
    protocol text NOT NULL,
    seen_ms bigint NOT NULL
);



CREATE TABLE public.memberships (
    person_id uuid NOT NULL,
    org_id uuid NOT NULL,
    role text NOT NULL,
    since_ms bigint NOT NULL,
    CONSTRAINT memberships_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'reviewer'::text, 'auditor'::text, 'member'::text])))
);



CREATE TABLE public.migrations (
    number integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_ms bigint NOT NULL
);



CREATE TABLE public.notification_channels (
    org_id uuid NOT NULL,
    channel_id uuid NOT NULL,
    project_id uuid,
    kind text NOT NULL,
    name text NOT NULL,
    sealed_target bytea NOT NULL,
    events text NOT NULL,
    created_ms bigint NOT NULL,
    paused_ms bigint,
    failing_since_ms bigint,
    CONSTRAINT notification_channels_kind_check CHECK ((kind = ANY (ARRAY['webhook'::text, 'slack'::text, 'mail'::text])))
);



CREATE TABLE public.notification_deliveries (
    org_id uuid NOT NULL,
    delivery_id uuid NOT NULL,
    channel_id uuid NOT NULL,
    event text NOT NULL,
    body text NOT NULL,
    made_ms bigint NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    next_ms bigint,
    delivered_ms bigint,
    last_error text
);



CREATE TABLE public.notification_due (
    org_id uuid NOT NULL,
    next_ms bigint NOT NULL
);



CREATE TABLE public.oidc_identities (
    provider_id uuid NOT NULL,
    subject text NOT NULL,
    person_id uuid NOT NULL,
    created_ms bigint NOT NULL
);



CREATE TABLE public.oidc_providers (
    provider_id uuid NOT NULL,
    org_id uuid NOT NULL,
    name text NOT NULL,
    issuer text NOT NULL,
    client_id text NOT NULL,
    sealed_secret bytea NOT NULL,
    new_role text,
    email_domains text DEFAULT '[]'::text NOT NULL,
    created_ms bigint NOT NULL
);



CREATE TABLE public.one_time_links (
    link_hash bytea NOT NULL,
    link_id uuid NOT NULL,
    kind text NOT NULL,
    org_id uuid,
    person_id uuid,
    email text,
    role text,
    project_roles text DEFAULT '[]'::text NOT NULL,
    made_by uuid,
    made_ms bigint NOT NULL,
    ends_ms bigint NOT NULL,
    CONSTRAINT one_time_links_kind_check CHECK ((kind = ANY (ARRAY['first_owner'::text, 'recovery'::text, 'invitation'::text])))
);



CREATE TABLE public.org_checkpoints (
    org_id uuid NOT NULL,
    size bigint NOT NULL,
    note text NOT NULL,
    made_ms bigint NOT NULL
);



CREATE TABLE public.org_events (
    org_id uuid NOT NULL,
    seq bigint NOT NULL,
    event_id uuid NOT NULL,
    ts_ms bigint NOT NULL,
    action text NOT NULL,
    person_id uuid,
    project_id uuid,
    envelope text NOT NULL,
    details text,
    salt bytea,
    leaf bytea NOT NULL
);



CREATE TABLE public.org_heads (
    org_id uuid NOT NULL,
    instance uuid NOT NULL,
    size bigint NOT NULL,
    frontier bytea NOT NULL
);



CREATE TABLE public.organisations (
    org_id uuid NOT NULL,
    name text NOT NULL,
    created_ms bigint NOT NULL,
    paused_ms bigint,
    plan text DEFAULT 'default'::text NOT NULL
);



CREATE TABLE public.passkeys (
    credential_id bytea NOT NULL,
    passkey_id uuid NOT NULL,
    person_id uuid NOT NULL,
    public_key bytea NOT NULL,
    sign_count bigint NOT NULL,
    name text NOT NULL,
    created_ms bigint NOT NULL,
    used_ms bigint
);



CREATE TABLE public.people (
    person_id uuid NOT NULL,
    email text NOT NULL,
    email_key text NOT NULL,
    name text NOT NULL,
    password text,
    password_ms bigint,
    zone text DEFAULT 'UTC'::text NOT NULL,
    created_ms bigint NOT NULL,
    disabled_ms bigint
);



CREATE TABLE public.policy_drafts (
    project_id uuid NOT NULL,
    person_id uuid NOT NULL,
    yaml text NOT NULL,
    based_on integer,
    changed_ms bigint NOT NULL
);



CREATE TABLE public.policy_proposals (
    project_id uuid NOT NULL,
    proposal_id uuid NOT NULL,
    yaml text NOT NULL,
    note text NOT NULL,
    flips text,
    person_id uuid NOT NULL,
    made_ms bigint NOT NULL,
    status text DEFAULT 'open'::text NOT NULL,
    decided_by uuid,
    decided_ms bigint,
    CONSTRAINT policy_proposals_status_check CHECK ((status = ANY (ARRAY['open'::text, 'published'::text, 'refused'::text, 'withdrawn'::text])))
);



CREATE TABLE public.policy_versions (
    project_id uuid NOT NULL,
    version integer NOT NULL,
    yaml text NOT NULL,
    sha256 bytea NOT NULL,
    note text NOT NULL,
    source text NOT NULL,
    person_id uuid,
    seconded_by uuid,
    flips text,
    published_ms bigint NOT NULL
);



CREATE TABLE public.project_roles (
    project_id uuid NOT NULL,
    person_id uuid NOT NULL,
    role text NOT NULL,
    reviewer_group text,
    since_ms bigint NOT NULL,
    CONSTRAINT project_roles_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'reviewer'::text, 'auditor'::text, 'member'::text])))
);



CREATE TABLE public.projects (
    org_id uuid NOT NULL,
    project_id uuid NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL,
    created_ms bigint NOT NULL,
    state text DEFAULT 'enforced'::text NOT NULL,
    state_note text,
    retention_days integer DEFAULT 90 NOT NULL,
    settings text DEFAULT '{}'::text NOT NULL,
    deleted_ms bigint,
    CONSTRAINT projects_state_check CHECK ((state = ANY (ARRAY['enforced'::text, 'paused'::text])))
);



CREATE TABLE public.replicas (
    replica uuid NOT NULL,
    address text NOT NULL,
    version text NOT NULL,
    started_ms bigint NOT NULL,
    seen_ms bigint NOT NULL
);



CREATE TABLE public.rollups (
    project_id uuid NOT NULL,
    day integer NOT NULL,
    hour integer NOT NULL,
    kind text NOT NULL,
    value text NOT NULL,
    calls bigint NOT NULL,
    denied bigint NOT NULL,
    failed bigint NOT NULL,
    rows_read bigint NOT NULL,
    exec_ms bigint NOT NULL
);



CREATE TABLE public.sessions (
    session_hash bytea NOT NULL,
    session_id uuid NOT NULL,
    person_id uuid NOT NULL,
    org_id uuid,
    created_ms bigint NOT NULL,
    seen_ms bigint NOT NULL,
    ends_ms bigint NOT NULL,
    proved_ms bigint NOT NULL,
    method text NOT NULL,
    address text NOT NULL,
    agent text NOT NULL
);



CREATE TABLE public.shape_grants (
    project_id uuid NOT NULL,
    shape_grant_id uuid NOT NULL,
    shape bytea NOT NULL,
    database_name text NOT NULL,
    token_id uuid,
    policy_hash text NOT NULL,
    example_sql text NOT NULL,
    rows_at_most bigint NOT NULL,
    times_left bigint NOT NULL,
    ends_ms bigint NOT NULL,
    made_by uuid NOT NULL,
    made_ms bigint NOT NULL,
    note text,
    revoked_ms bigint
);



CREATE TABLE public.statements (
    project_id uuid NOT NULL,
    fingerprint text NOT NULL,
    text text NOT NULL,
    statement_type text,
    first_ms bigint NOT NULL,
    last_ms bigint NOT NULL
);



CREATE TABLE public.taint_history (
    project_id uuid NOT NULL,
    event_id uuid NOT NULL,
    grant_key bytea NOT NULL,
    source text NOT NULL,
    what text NOT NULL,
    person_id uuid,
    ts_ms bigint NOT NULL
);



CREATE TABLE public.taints (
    project_id uuid NOT NULL,
    grant_key bytea NOT NULL,
    shown text NOT NULL,
    source text NOT NULL,
    query_id uuid NOT NULL,
    gateway_id uuid NOT NULL,
    tainted_ms bigint NOT NULL,
    cleared_ms bigint,
    cleared_by uuid,
    note text
);



CREATE TABLE public.throttles (
    throttle_key bytea NOT NULL,
    failures integer NOT NULL,
    free_ms bigint NOT NULL,
    seen_ms bigint NOT NULL
);



CREATE TABLE public.token_keys (
    project_id uuid NOT NULL,
    pepper text NOT NULL
);



CREATE TABLE public.token_use (
    project_id uuid NOT NULL,
    token_id uuid NOT NULL,
    day integer NOT NULL,
    calls bigint NOT NULL,
    rows_read bigint NOT NULL
);



CREATE TABLE public.trust_documents (
    version integer NOT NULL,
    envelope bytea NOT NULL,
    made_ms bigint NOT NULL
);



INSERT INTO public.agent_tokens VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-226b-f1d8-2651-50d5804d550e', 'live', 'claude', '01a2045f-18fa-b78d-8eb9-edfb22ca7844', '\x025079ec1198b6056ebab39ac203b9697dbbbd02e370b85628bcfaa3cdeff2ef', 'gw_live_d2e4', 1795369673323, NULL, NULL, NULL, NULL, NULL);



INSERT INTO public.api_keys VALUES
	('01a2045f-18fa-c21d-a15e-a4c8be318712', '01a2045f-1c84-4e3c-b2c3-157aa87dd4f2', NULL, '01a2045f-18fa-b78d-8eb9-edfb22ca7844', 'all', '["org.audit","org.read","org.settings","project.approvals","project.audit","project.create","project.databases","project.erase","project.gateways","project.pause","project.policy","project.read","project.remove","project.taint","project.tokens","project.tokens_of_others"]', 'gk_iPA-zF', '\x7a15742f65b471587bd5de501fa25e8b8915f29c4e5251304bfda264f48e149c', 1795369671816, NULL, 1795369671861, NULL);


















INSERT INTO public.audit_20261122 VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 1, '01a2045f-2930-7ec0-4d4d-4f492dbc97d0', '01a2045f-2930-6963-6321-a461b55e7bea', 1795369675056, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\xc9b0b52c4e9ce064b2f696387aa8d441aff34a5d0551fd20a46ecf82db8be072', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 2, '01a2045f-2930-7ec0-4d4d-4f492dbc97d1', '01a2045f-2930-6963-6321-a461b55e7bea', 1795369675056, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\x4807a4fca84b813769f233876be0a5fd67f28b087d83507f175eaf1af337ecf2', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 3, '01a2045f-2930-7ec0-4d4d-4f492dbc97d2', '01a2045f-2930-6963-6321-a461b55e7bea', 1795369675056, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\x554a8981f316cd9fd8e283c04f196e55467fbc9db321defec599a2033dd20410', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 4, '01a2045f-2931-1143-8f7a-b526a94bfa05', '01a2045f-2931-515d-6410-246fce281bc2', 1795369675057, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\xdfffcb32deafd4b42c7df4fd8fb89114c1a2931fdf11368dafffd81ee4e3fb83', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 5, '01a2045f-2931-1143-8f7a-b526a94bfa06', '01a2045f-2931-515d-6410-246fce281bc2', 1795369675057, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\x397a4a360629173a77dbb3d508835b3490ef9dfad69199d9c6f9bc091f658dc7', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 6, '01a2045f-2931-1143-8f7a-b526a94bfa07', '01a2045f-2931-515d-6410-246fce281bc2', 1795369675057, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\x3f9abac2fe8cb565e105d24d278c1a899f9e4c10758add739d85aa4a87c11f96', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 7, '01a2045f-2931-1143-8f7a-b526a94bfa08', '01a2045f-2931-e2e4-0aac-ca4da86f6ac7', 1795369675057, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\x68dc2175aa92bbc2bd50082adf0f14bb3e1d9c3bb7032799d72ba710c14003de', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 8, '01a2045f-2931-1143-8f7a-b526a94bfa09', '01a2045f-2931-e2e4-0aac-ca4da86f6ac7', 1795369675057, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\x02b5e600d6cc44b995106bd89adde5c6c02dd94b7dc6d329c569886f50096366', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 9, '01a2045f-2931-1143-8f7a-b526a94bfa0a', '01a2045f-2931-e2e4-0aac-ca4da86f6ac7', 1795369675057, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\xc286a9785f4d5b7e26aaed1326e9c9db01cdb286ad89f43c4fbd03dbaa1a5160', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 10, '01a2045f-2931-1143-8f7a-b526a94bfa0b', '01a2045f-2931-afae-6b92-8e07b191a41a', 1795369675057, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\xd5592212bb543226ffa51d1bf5af91a14e812e441324a3439f2c35cae472373c', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 11, '01a2045f-2931-1143-8f7a-b526a94bfa0c', '01a2045f-2931-afae-6b92-8e07b191a41a', 1795369675057, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\x5b7ed57353fdb8a0faa6f599a19d06e10898cf9eb9e89f89d7596608875d770b', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 12, '01a2045f-2931-1143-8f7a-b526a94bfa0d', '01a2045f-2931-afae-6b92-8e07b191a41a', 1795369675057, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\xc17bea3c42ae923618d90cf338c81a2c4e257283342dbc3100063d7baebc4a90', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 13, '01a2045f-2931-1143-8f7a-b526a94bfa0e', '01a2045f-2931-1f7b-fac2-3934810bb760', 1795369675057, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\x60e3f107d5a0ae684cce8d935942511372767d1417b07faf8e00b5343ed49330', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 14, '01a2045f-2931-1143-8f7a-b526a94bfa0f', '01a2045f-2931-1f7b-fac2-3934810bb760', 1795369675057, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\x581448021dd4c611c85258233e4f36fe98ca7d009d12cfa804ef4303c89903cd', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 15, '01a2045f-2931-1143-8f7a-b526a94bfa10', '01a2045f-2931-1f7b-fac2-3934810bb760', 1795369675057, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\x8542baef759f535e3680fa4f50f97befb8b300c26cd3e2f82b715b22b6559b87', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 16, '01a2045f-2931-1143-8f7a-b526a94bfa11', '01a2045f-2931-edd7-355c-4eb46af56923', 1795369675057, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\x52e07389e03631e912994477afd98c4ae35bb448c91e7ebbdfa45fccdbc105ef', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 17, '01a2045f-2931-1143-8f7a-b526a94bfa12', '01a2045f-2931-edd7-355c-4eb46af56923', 1795369675057, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\x3e5a961b856a04f8bf132f9c1ee8ad5fb85d62b2d3d8b55ae7b89e77befa2971', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 18, '01a2045f-2931-1143-8f7a-b526a94bfa13', '01a2045f-2931-edd7-355c-4eb46af56923', 1795369675057, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\xc98302f360436e02cc8e320f0f45bb085402f080e983c5107919ed4886b1d272', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 19, '01a2045f-2931-1143-8f7a-b526a94bfa14', '01a2045f-2931-c0ad-c256-abe0ee02d4c9', 1795369675057, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\xc86edb1c02c7140d3d6827cc821c1d0ff4535b284ca667b06b705ceb6b00a8e4', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 20, '01a2045f-2931-1143-8f7a-b526a94bfa15', '01a2045f-2931-c0ad-c256-abe0ee02d4c9', 1795369675057, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\x38b9f64cb256751f3f2cbc6c3aaadbd0d475cf8ce4458c00a67319f06689f03f', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 21, '01a2045f-2931-1143-8f7a-b526a94bfa16', '01a2045f-2931-c0ad-c256-abe0ee02d4c9', 1795369675057, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\x2e24d5cd05dff3e7e572d0fd11e86dd7c3a6a0ee1a91ec7dcc695f79d3515183', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 22, '01a2045f-2931-1143-8f7a-b526a94bfa17', '01a2045f-2931-5f99-c2a0-35dfd074734c', 1795369675057, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\xd5c6a7f03d53448fe2f61699b7304eb3fbb0ab9bde1bcc93f10e68e92451bcbd', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 23, '01a2045f-2931-1143-8f7a-b526a94bfa18', '01a2045f-2931-5f99-c2a0-35dfd074734c', 1795369675057, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\xb924f8a176f679b95e867c7611bc5ac2efe56fbcb6f394b85de568074957b5b2', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 24, '01a2045f-2931-1143-8f7a-b526a94bfa19', '01a2045f-2931-5f99-c2a0-35dfd074734c', 1795369675057, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\x23bdf66066d27f3656d5accaf5fc1406ef83583403e18b71cb643dc1180f99b7', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 25, '01a2045f-2931-1143-8f7a-b526a94bfa1a', '01a2045f-2931-b493-95ad-21846b6f48a6', 1795369675057, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\x5150f754fe7c85edbaaa48b0d1ecdffdbecc59dbd8cb4341bd3778bb9e2db689', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 26, '01a2045f-2931-1143-8f7a-b526a94bfa1b', '01a2045f-2931-b493-95ad-21846b6f48a6', 1795369675057, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\x7bb09548ca3751f8cbab51b6726d3b1f37e2eff11204c4fa8b23cbd0b5a4ec1f', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 27, '01a2045f-2931-1143-8f7a-b526a94bfa1c', '01a2045f-2931-b493-95ad-21846b6f48a6', 1795369675057, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\x23c7196f8bd2fbc0b40271ae16781719bc58063287a102da0ebd632ba80b8904', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 28, '01a2045f-2931-1143-8f7a-b526a94bfa1d', '01a2045f-2931-1488-11d6-5363a6d62893', 1795369675057, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\xb7ccb73415ff36935506d37ef50cbc70fcce9a7d63af9656e325a64fbefb676e', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 29, '01a2045f-2931-1143-8f7a-b526a94bfa1e', '01a2045f-2931-1488-11d6-5363a6d62893', 1795369675057, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\x1b0e75ca11e5624171bbdc90075b370a5aff301dd78ffdff03135ef2bdaa1c9a', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 30, '01a2045f-2931-1143-8f7a-b526a94bfa1f', '01a2045f-2931-1488-11d6-5363a6d62893', 1795369675057, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\xf7ae08a735758edb7683e9345109c7eb035bfc0f0069be8af897be48420b9e47', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 31, '01a2045f-2932-1a20-a370-abd6b34fd37e', '01a2045f-2932-7cc6-337a-2b007af121d5', 1795369675058, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\xb823fd7c1ec4851fe69837504a40c3af36665fd0740a41f43175fe30aa25abad', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 32, '01a2045f-2932-1a20-a370-abd6b34fd37f', '01a2045f-2932-7cc6-337a-2b007af121d5', 1795369675058, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\xe7412a1495fd8bf30b56587cd7e8c9342f6531ebf78ed8d39d836a8408315b2f', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 33, '01a2045f-2932-1a20-a370-abd6b34fd380', '01a2045f-2932-7cc6-337a-2b007af121d5', 1795369675058, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\xe1e12d061d5940b6714c16a5571d7d56c9e52a88ca82236077d4fa2e6ca82129', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 34, '01a2045f-2932-1a20-a370-abd6b34fd381', '01a2045f-2932-0df0-52e7-015f8ecd96b1', 1795369675058, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\x8fcb1b950e0006c7b5b23328d99daff9ba8c046f15b5ff9fcfd1217204b0af79', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 35, '01a2045f-2932-1a20-a370-abd6b34fd382', '01a2045f-2932-0df0-52e7-015f8ecd96b1', 1795369675058, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\x25a5c522bfff5e2800d8bac98be424dfb8b505ed82181c5e5cc273eda98bf9de', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 36, '01a2045f-2932-1a20-a370-abd6b34fd383', '01a2045f-2932-0df0-52e7-015f8ecd96b1', 1795369675058, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\x157854ba0a9dcc34d5b179e75c81aa9cf80c78af9f6c51bad1530d7f0e958ccd', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 37, '01a2045f-2932-1a20-a370-abd6b34fd384', '01a2045f-2932-749d-297a-50d5c1cf46c8', 1795369675058, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\xe2972e8aa9f90f3fd96bdb4b13610666c22b03a7ee8d33ee4718a0ea3b791076', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 38, '01a2045f-2932-1a20-a370-abd6b34fd385', '01a2045f-2932-749d-297a-50d5c1cf46c8', 1795369675058, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\xec885f8e4899a05d6ddad37a2542ec9247505969df17c47f9d74db638bbc8a5c', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 39, '01a2045f-2932-1a20-a370-abd6b34fd386', '01a2045f-2932-749d-297a-50d5c1cf46c8', 1795369675058, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\x7185b81f131f8c9b82df4bada19b278951844709520a8a7878a6441479722c17', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 40, '01a2045f-2932-1a20-a370-abd6b34fd387', '01a2045f-2932-19ae-486c-a78e0c0d0f79', 1795369675058, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\xf8a7a52f59d27d2cb4fd8ed1604f6ffece4f844d2baf9ffa901160cdc1135c88', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 41, '01a2045f-2932-1a20-a370-abd6b34fd388', '01a2045f-2932-19ae-486c-a78e0c0d0f79', 1795369675058, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\xcf8b0e094defa90e7a97506622cf79fe6bc969c137c1546c96c82c994c165fc4', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 42, '01a2045f-2932-1a20-a370-abd6b34fd389', '01a2045f-2932-19ae-486c-a78e0c0d0f79', 1795369675058, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\x035f0d4de67575ebc4fc6ab7c519f6529849f44b6f6f9313bd4a92c74310e539', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 43, '01a2045f-2932-1a20-a370-abd6b34fd38a', '01a2045f-2932-edbf-ea30-2a0feffc2a54', 1795369675058, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\x9c090b02276a6b77f64175950cb36c851354efa771afd8b4f47ca80dae863b31', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 44, '01a2045f-2932-1a20-a370-abd6b34fd38b', '01a2045f-2932-edbf-ea30-2a0feffc2a54', 1795369675058, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\xa04e92886c86409083af20b9265f9e4ad51e05e325a9308557ba2d6ee9267e83', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 45, '01a2045f-2932-1a20-a370-abd6b34fd38c', '01a2045f-2932-edbf-ea30-2a0feffc2a54', 1795369675058, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\x8e3c9ee78c35cb52145fb22e9bd34a4abf3faa1dae8120976b1d863d84aada53', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 46, '01a2045f-2932-1a20-a370-abd6b34fd38d', '01a2045f-2932-6dcc-a66b-552446f3b2b1', 1795369675058, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\x7222cbe3d594e1543389e035158d0f1abcda68a99ffa5dd8eb83d1f8194938a2', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 47, '01a2045f-2932-1a20-a370-abd6b34fd38e', '01a2045f-2932-6dcc-a66b-552446f3b2b1', 1795369675058, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\x0bc1c9b6965e0b98e60e4310d159de8affe0751b6a3f9de1536324d7549d1ded', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 48, '01a2045f-2932-1a20-a370-abd6b34fd38f', '01a2045f-2932-6dcc-a66b-552446f3b2b1', 1795369675058, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\x271010faeaad6c3cd37aa19936ed2abb23a94aff64cb58d633bae2f41cb122de', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 49, '01a2045f-2932-1a20-a370-abd6b34fd390', '01a2045f-2932-b9cf-8ba9-04f48bd928e3', 1795369675058, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\x28de84e13e120e22b61ec19d0908308e05955ab6044ae158aecd390350cd76a1', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 50, '01a2045f-2932-1a20-a370-abd6b34fd391', '01a2045f-2932-b9cf-8ba9-04f48bd928e3', 1795369675058, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\xb624d11c6ed87f2420fc00c45b4fc48bf1db31687f47ac3e62b447fb2b0c608f', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 51, '01a2045f-2932-1a20-a370-abd6b34fd392', '01a2045f-2932-b9cf-8ba9-04f48bd928e3', 1795369675058, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\xf0c05e23613fa738b13d6d35e3192b660623cd2a9a4f242ffbb4552992f688ff', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 52, '01a2045f-2932-1a20-a370-abd6b34fd393', '01a2045f-2932-076f-0c1f-d50885060cd8', 1795369675058, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\x22dba22d242ae06c571c06297574c8f5addeac87bbfab25e814ffdf4783274f9', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 53, '01a2045f-2932-1a20-a370-abd6b34fd394', '01a2045f-2932-076f-0c1f-d50885060cd8', 1795369675058, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\x50e4f1bc05e041e3773bca2c23e8fc90ccb21cb550272eb423ace1aaa9ddfd24', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 54, '01a2045f-2932-1a20-a370-abd6b34fd395', '01a2045f-2932-076f-0c1f-d50885060cd8', 1795369675058, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\x525bea803ceba04348b6d5bd0526b13b2388466458f29d7427f6a6bca49946c1', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 55, '01a2045f-2932-1a20-a370-abd6b34fd396', '01a2045f-2932-21f9-fb3d-21d893ff052e', 1795369675058, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\x74e3506bf56b72fa55268652688416a6eb3e8f54e6da4e786caf4e170fedc505', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 56, '01a2045f-2932-1a20-a370-abd6b34fd397', '01a2045f-2932-21f9-fb3d-21d893ff052e', 1795369675058, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\x983dc4f6cca195e1957b5266ca629c28bd38d7011074a9cbb4feff12241cb5e7', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 57, '01a2045f-2932-1a20-a370-abd6b34fd398', '01a2045f-2932-21f9-fb3d-21d893ff052e', 1795369675058, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\x4092d504962bb5f190b4eec4c9de168203a24a2df2d2eb67590956ae8323d7ef', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 58, '01a2045f-2932-1a20-a370-abd6b34fd399', '01a2045f-2932-75d0-81ac-1cd086ec6084', 1795369675058, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"9f4e01efb327133f","sql_raw":""}', 3, '\x9bfd42c70a625749949ba459b4412bd58d5a11a90cf5c71303339abebb8f284e', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 59, '01a2045f-2932-1a20-a370-abd6b34fd39a', '01a2045f-2932-75d0-81ac-1cd086ec6084', 1795369675058, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"ALLOW","dialect":"postgres","statement_type":"SELECT","tables_touched":["public.orders"]}', 3, '\xad75fef098c657e5ebdbc8cec33fffdc28a0c2a51de902a40deaf777dcb5ba3a', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,-5599985130018053623,2964249195197613378,-8447104225029796601}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 60, '01a2045f-2932-1a20-a370-abd6b34fd39b', '01a2045f-2932-75d0-81ac-1cd086ec6084', 1795369675058, 1795369675928, 'EXECUTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"exec_ms":2,"overhead_ms":1,"rows_returned":3,"truncated":false}', 3, '\x5055d17533bf3de7db404d8d94606682f611ba72e374dde009ea25ce9234b4d5', false, '{}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 61, '01a2045f-2932-1a20-a370-abd6b34fd39c', '01a2045f-2932-aa0d-eeb0-33a0bc8913f4', 1795369675058, 1795369675928, 'ATTEMPTED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"sql_fingerprint":"248b9b718f6f1445","sql_raw":""}', 3, '\x1674df38cfab0293965926c1e93ae6e94d3c518c435f94671c6aabd855d71aa3', false, '{6207830967162351408,-7535422747777565781,-4086580227805455008,4529273960740722388,8705027239068492758}'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 62, '01a2045f-2932-1a20-a370-abd6b34fd39d', '01a2045f-2932-aa0d-eeb0-33a0bc8913f4', 1795369675058, 1795369675928, 'DECIDED', '01M825Y67TR8ET2QN4S2Z331RJ', 'shop', 'claude', '1', true, '01a2045f-226b-f1d8-2651-50d5804d550e', '{"decision":"DENY","dialect":"postgres","policy_rule":"table_access","reason":"","statement_type":"SELECT","tables_touched":["public.payroll"]}', 3, '\xc640d211b9ffdebcaca20afbd99d4f2dc17f8b0e19f21d28bd9ebdceb058142a', false, '{-2823119209538114103,-7535422747777565781,-4086580227805455008,4529273960740722388,8705027239068492758,-6884365386509378911,-4309804138368728734,7617336942605820841}');
























INSERT INTO public.audit_checkpoints VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 62, 'gatewayd/cb9343e8a236e9c4f0817e44ec250f29/01M825Y9R3ZMZYPF4JA2VSEMMB
62
D4hcxe6qcdfzRhu0EHgW7OHfBY0WTYyF41WSLnXyGRk=

— gatewayd/cb9343e8a236e9c4f0817e44ec250f29 bK6Sv5Rnt1c3Vogi4cR3/ZbrtCCRlu+MvqNn3JZOHq7iYGqund7Pao3b0MFw0M69FoBNIKBX5/n/O2/KsZYvOzpOKAE=
', 1795369677172);



INSERT INTO public.audit_days VALUES
	(20779, 1795369670793, NULL),
	(20780, 1795369670793, NULL),
	(20781, 1795369670793, NULL),
	(20782, 1795369670793, NULL),
	(20783, 1795369670793, NULL),
	(20784, 1795369670793, NULL),
	(20785, 1795369670793, NULL),
	(20786, 1795369670793, NULL);



INSERT INTO public.audit_details_20261122 VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 1, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\x25fa5e039f52a8e8a95f64d6589c1f7844066542ec38008d331dfd3b27241631'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 2, '{"agent_intent":"count"}', '\xb5437d8a755622d6d7a0b48cb048f279829caa652af899a3e1f16bdc45cc8e26'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 3, '{"agent_intent":"count"}', '\x843738deb48d03ed3034ef8590e4d26399aec2bd13a8e003589fe1ab3edaf8c6'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 4, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\x4384d5d2603193dd4c79f944961506791781419820d804b84f628feb38e0f9e0'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 5, '{"agent_intent":"count"}', '\x5e1fcdebdb9a4b6d53521c65b37666ba715b08cd045ab09372afd2710ad9cef6'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 6, '{"agent_intent":"count"}', '\x43b2925d1cc4f218dfdd2f09fbdace22f4adb07edc748c37be0e0b42c8b429f7'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 7, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\x8b63d06b10adda81a5c15ed58521c8627b27f3920545d559d9faba88b46ac795'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 8, '{"agent_intent":"count"}', '\x70c479e74b3b3656936196ae47556dea0961cfed3149560750113ddb6b7b9947'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 9, '{"agent_intent":"count"}', '\x079310b296e5c0295e7dd8b2cabd52dc4e508e53412ff2f6322cb18ae6279ae7'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 10, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\x7cb50aa2c341e4d4f349f2fc3a04d3922aad5f44edf8f24825f6da1fc2f33e10'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 11, '{"agent_intent":"count"}', '\x5bed63fd833ac77b391fa916d5a31558b3d0f3cc257c0d11be0614691b18a8e5'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 12, '{"agent_intent":"count"}', '\x8c29596d968bcfc4d75e4a6ae1a86ddf0b5c711e3f0a500bbf85e09aef00529d'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 13, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\x9d99048d940283e11b7b00ece3f10afb455c7147cf3a63813f52673c40489eff'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 14, '{"agent_intent":"count"}', '\x395ab413f5b4ad1b310e8a99ada61b89685f0808a8d0eaf250d08732798caff8'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 15, '{"agent_intent":"count"}', '\x2a6d6c4332a8fc27ce5892b0e312dd0aa9d3d9fa5bc426def709fe566c325750'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 16, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\x8fc47260de67dd75fa35b1dec4802385708add6215e4d5a4b9bce8ddbb887c98'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 17, '{"agent_intent":"count"}', '\x0996c09ef2e10ef9e38dccf0b840bfcf6582cc8141f57345d291626e3cdb60a2'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 18, '{"agent_intent":"count"}', '\x6b43baef5d07144de471fc6fd7ec50fab98c1b423599688551f5904d67f0658c'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 19, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\x4dbd9b50b22f2205ab63636001efa49d6404d6966c95d6a112e11d22b46f610f'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 20, '{"agent_intent":"count"}', '\x3c305c7785b1585abc62e5adcbb3d6ea377c425a6381de9b01b1fab414976747'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 21, '{"agent_intent":"count"}', '\x9468e1960cf6810f527670f4daaa0fadeece7005ce319bf61596815eb38c4940'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 22, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\xdb766b2d38292c5df6486c2f292f0b50154f13c2ffdf805ed2f505d8bda67a98'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 23, '{"agent_intent":"count"}', '\x99948d608edfd81ad3b5b3c54c7e24d0df4ee406d6ffabf86ae4ba91b41d09af'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 24, '{"agent_intent":"count"}', '\xd9b30080743df838a1685aa7fb56c6cd25f7f54485201b3dd2cfe9534d13f92f'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 25, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\x880ec999c55c6c52ee6efbf203e17055b50ac8ac04ce62d50b3c76390bff3c70'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 26, '{"agent_intent":"count"}', '\x3c36562b967e771446a43256b54af8bd09a175a61024d03764b188e2c8c38291'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 27, '{"agent_intent":"count"}', '\x694979c9a691f41e2f41ae080fad9587cd0724f5ad84d830d312ad50e7f388ce'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 28, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\x4c6d1157ee63a6ce524cf4d3020056a4cb8ee515eee966ce638b8c9e2b746458'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 29, '{"agent_intent":"count"}', '\xe4c4bc4adeb4b584f6883acbf7c697d91bb16b4538f1f77681acaa58fc9459a2'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 30, '{"agent_intent":"count"}', '\x16397e910e71d668a46d1909d040adebd1c6cb69cb79ef27d8161733e3833101'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 31, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\x0ac33df3f2b85afcd89768ed44449eb751f0da38860046089498dabe1a68e874'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 32, '{"agent_intent":"count"}', '\xa7df7dbf4f2ade84d8289ff64ba5fe494a7a3a8b6047505707a6c3e3c43b3b3a'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 33, '{"agent_intent":"count"}', '\x2d95b396041b91f8849079493214b81e28bc68cfc8c6993e6b278a0bad3aff08'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 34, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\xfa6c85e5bcff30e21d1751e6b10e0d6efb37b393b3a6a20c17705d034af3257b'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 35, '{"agent_intent":"count"}', '\xbadfd080f276c54ccc21323d208fb3a9ea901405b00c6486da977889b48ceb69'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 36, '{"agent_intent":"count"}', '\x3dc6b69cd80e141d57e36257cc951a20e630a240b95cd4f8120f96dc7fb67d8a'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 37, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\xa775843290e0491f18f9dd88f1373ce304841ad19c94841e1277da2b1b074d3d'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 38, '{"agent_intent":"count"}', '\x8d01bfe3725c59ceaa69e42097d0d0d2b479b6eb54d4eb0144e3cc7cf366eca0'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 39, '{"agent_intent":"count"}', '\x7455c80c5a42a9c1a7467a45e1e08d3f280fc2444d163b9e97eafa86dc390985'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 40, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\x17887600a4d265dbe392090e967d76c6de1c7a2051c5d20b5481e71f33e0c10c'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 41, '{"agent_intent":"count"}', '\x216a73084c2abddaf4c474b6397c0c16618df183cfef8a80fc15707d9893de50'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 42, '{"agent_intent":"count"}', '\xce1cee595a99c36279219ca5fe2fbf6306472c9600b1da4dd2a75f5ca07bd243'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 43, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\xc7f2368e4ea6e40004954eb75c1d19b903485761a34d98cb3a6874145f7d1591'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 44, '{"agent_intent":"count"}', '\x9328f8755b3ebc9a0b2c78a68de759c81130948aa7065961d939fda2a9e118cd'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 45, '{"agent_intent":"count"}', '\x10eb7c6e01a7950d31ed565f4d30a0a09eca037fff3792c2adfcefb3d878a050'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 46, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\x7ac7bd3ecd61f9378fa32c890aab2445f39af6b10dd20397dc215312b4689acd'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 47, '{"agent_intent":"count"}', '\xa3a85f21b60132e13e323107856bbdefc43858530ae9cd5f880604f8c6c5d9e5'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 48, '{"agent_intent":"count"}', '\xe8351e432a69171fe416d276f53cc8b0d07f861f755d66f0384c2fd08c6245bb'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 49, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\xd550e5aa8a23cf1b8411d6bbe1018251c6135890f9452f88bff0661a7861c6cf'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 50, '{"agent_intent":"count"}', '\xf96a3a79939ebd244b8c683ccac938c6f21b80637216580b96fff68681218017'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 51, '{"agent_intent":"count"}', '\x655866e1eada3160b602dd2d663ec7d1bf440306a17d6b5716e06ed72c5f30da'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 52, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\x350510d63df143b27b3ad1f301a7d448225a3e94404ea44c2fb37acc14a0ba16'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 53, '{"agent_intent":"count"}', '\x6f894a90713ee6827cfe6c87069714b76192013d138e531b023ff18d582abcbf'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 54, '{"agent_intent":"count"}', '\x93d6a60fcc88d48ca8d701534e7b92decfd160902026302e49b2fbd35868cc13'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 55, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\xededb09d0aa13ab3c436e8c0f2c84ff16c7ccb6474cbbd40379a125e76c97599'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 56, '{"agent_intent":"count"}', '\xfbdf7f8ec54f106bee6060f73c8f5015c4451560614a14807d443a3c473a1af9'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 57, '{"agent_intent":"count"}', '\x223256bfd94a93f7a06c1e29fa334f6a3ac4dab0fafb8291dfd190c1eb696f94'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 58, '{"agent_intent":"count","sql_raw":"SELECT count(*) FROM orders WHERE id = 7"}', '\x739198a4fa56ab665c17bce5f4d036e31c523a2678109f293c548a18c3327a7f'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 59, '{"agent_intent":"count"}', '\xae00dab20dc06a84488d60f3a3f46b71eac7229600870ab8f7c8acdb0ef9a42f'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 60, '{"agent_intent":"count"}', '\x2573fd323fa484252804eb954a8fff83f4d8995022584eef185a783bf54ffbd9'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 61, '{"agent_intent":"count","sql_raw":"SELECT amount FROM payroll WHERE id = 7"}', '\xfab890b4798ef4da1485c769e5aa6098c21d88da4ea3a695e982ab95424fd7fb'),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 62, '{"agent_intent":"count","reason":"no public.payroll"}', '\x2473a64e1a81eb05d7c8a144d5d4bf7a8649d9cd2fe9fb61ac1b5c33806d182c');



























INSERT INTO public.audit_heads VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 1, 62, '\x0f885cc5eeaa71d7f3461bb4107816ece1df058d164d8c85e355922e75f21919', '\xe99f65cfc89eb09360c0f487f7b5dd4fd0158b8c948b5293d9294f5484786205f1f86053b7dc010330367d6fd69812dd895d0fb750fdf78bbb0b3a86e689648b39987cc221b6f2825c8da7d1b108f124c4c6c2f138af299a6c1370d077b3379782287a1ad6131be8c09ba2aa30de7d83b37e4022b7c4db870ff8bbddb30c38a0914a94f9c844d614e39bbb69e98d5f0da09174c7efa2aa9bc038d7d25677766c', NULL, 1795369675928, 1795369675928, NULL, NULL);



INSERT INTO public.audit_tiles VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', '01a2045f-2703-fd3f-eb3c-9250b797528b', 0, '\x82902899451119262101a922c28d000a981a954b07922127d6ac4de5d77be06adc52cedf8556ed4aeedba91061bee273119c15fc48c115fbce179f74e72af875c8226889c021dfbe3f7b5f27915386d6f252f0910b6cca49e1e73e3b7310829a733b904e15d75338d43e752a0bc8c9a5bfdfbf0f8239ef7aa23860ed3c7f88e896f0e23b70c1a91c18b019f31f2d2124aa4c46128e30c725beee1a6440001c41ff136b72de7f9f85e74d24d88cb9a402c3b5f34ad641448edc7790376c6a3f6d815ea9de1b9ec4f20554a2c45058ad3d37fcc1f763fda0dff46668b7cc0cd919a6f201427e080efa3df24992c39ae34be53f635b3130c923f7c6bf352da122e4f3a9dff8e193345893249b0acf0c753c126b962e020ed3a4cb7ab9916c5bd64076b18967748f988978bf6f208c50bc4e9e764eba1d40acb1b53b354aedafbf3bcb25f8ed29da7389727450c8849441d57590e91b50abe09165d269a8a32fec2fc77fca6f96610e7487b5a1e6bcce88d925374be2b0bdf8beac6c5f53ddc068eb903645235ef994f8145a69a45e4a7e23173557840108014820cbd1f98db1031f15e6599f1b6f45d46d862e087594a4ac4d8dfef193c674d12786f7b9246528e01442bae9d3c2420f26b0d631323d572bcdeabf9988807d49721af4a6e4cef83cde7156c837fa10a458d06026250c30e6773e12203767ad93d43c7bc71f201f558219b8e958a4c9c95cef752520f0550489b543d9a7c35b756d1904dab086fecbce723a80efce67c864e453b801cd9c6ee1c16dbfaf8a181f5bb5a08d814279227e80aa123a3a244b6d21899de6e549292fe433aad4c9987fc3773f8a0ed2cf9f92f309b199a733e16868c70806e1937a5363b11feee35be0e9c39ad25af800b8f17b28da46439546d559fb526d7b87274e097fb8ee9967ca4c4d5ebaa3adafa0026cb3a9da27cd386bff325c0ec3bd2e4b57bcb2bb8853a90c1317f951af3b5ee72e06fbef510672b8977b841d6911cce7957722ce64e81dcf9de41dadc55b409a59faf99f4856cd1c3bc25fbe8e9ec2db883a3cfe719210dafe58370a635861564db45df6070f5e1114b8f41701439582a2b842e3219efca7460ec588f35fa9e030745c3b35ba533f6d5e1159410da58699a2491294f2d7b3b0acd7dc1506032b7755062d5281b6d20a94601e24f6d6b8616ba1071e32e932963c04dfca47d2edd2186c483ec29570a3726fbf1cfead6166eabf1271c166e2e8b3eb82068582399d452ee2118a36fdd3548025a2a7e798ccae2f7e7d6eaa60438a23b0ede2bbcb620476bfff31c8ef4c1177a03fed0c982850e494e906fefd494f9d7b0fc8ef4ccd80b907a9e4de376ae6fee6f3791b0aa026014bec02e772f02b6dc01dddd5040b99150bf439775d851029ecc462b1627c175dab19c923fb525980cc6b022fd536555a06586129f639a5597aa1a1c03d08194f0dd1e68ab59268004b06ca4cf0c0386a22468050dd58676ceb4dbe58afe9d75d06b4a77f22331e5b6df56d3a6a8a37effc18098efd2e355e11655b32054e28f998da9edb37f9b2593feb3985232d4ff2d795ac2cc694a5bc947e8117158d11a397b2a5fdf60f7b88f91d49c5d95bd3a2188fea069824c8e0032a2d2b6517442d1864258c313a71ec678841987bfe7373a1e6b5b00c15a0f788cd3ead1fc5ca0fc327aa895e4fea17be4414b250a309c3ed04bb0efd71038d9eefea2f2968d7bb1ac5771bdc097b5787f237cf130b3ec86414db7818763225852b42f1d8d5e9ad89c68a1df05aa9e70d75e5674864d5d40d5e91814097442fc989361a883dfdc174767fdd0f50604cd0e95410988daa2041d741198f51ce41246c74200456ca9b77f9af4b79394e0eba94ba7c82147859b525391a09a44ad0eea225356dc901714ee2210beaf628e06143736634973e79d0720fada7d00db8327a83c359995a5ff2f893a07ece698cd37deec7592276225f0bfabbe7b283db487fede51c988bdc0deb5fd8b0e7843ec8aa7396a81199fbea16818a570391ab8ec8cad98333271ba74b42d9f4a5b33e7ea52e0e94287be82c4696f87b2522ff234db37b7b46c7cf968e5392d864a7b1a8a86747536d875df71a3c404582df4306937b1e24d712e9b3b29fbce27e148eebaf47af1ffd6e96061c63baab906778501e919ebfd62eb41861e55ffcdbd3729bf0f6d79c6fb954d9851c2c33e92c54a9cd64e9d45bbb72d80c26a8aaf93bff9e9975644f433bf55be4dabaa51bda4b7b5c9bfdc0da8bb1cc2edaaab12796b4ab1c47c6de1d4c23cec3757bb988def0e4d24e573e59b4f9a93c2a6ae317d90f304c85571dca4c9851df39590392c84b1494d10741819c4bc62dffacb01f949638e4a12575fb71e0ff05fd2443e090f57b57793b9503eb426ace882c3390d54ad66364cd3d0b3d353faeb19486fc4cd7317d42e5ad68bee960f4b6f4e191e85b66252110394eae589685987474753df22726cded4b9153419582daa782b0ce8833672b5a4766c0399e28af04048e1e1c4d79fcd34b5216865d59fbae3263a7ac5491b5312e35217092eaf0c82b7db78e3666b8b97984eac04859d918a9c49216d87ea7d92f3014d5d1e8e4d7a1e31419cc7d74810c5b676c03d078b6752a2f6bba0bd523050eeb675ffd586f14635d510f3dafda77fb02043db401a48165dd91e7216e5a5ecdfff725e0ee4f6577e3778bd4f5552142b173b627d6088c2547e0528655b1d4dd8949246e1bc8a03d10c5c9fdb5a1b8f20d2253a3084c3d0c9e28ef6d3d33');



INSERT INTO public.bundle_heads VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 3);



INSERT INTO public.bundles VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 1, 1, '\x7b227061796c6f616454797065223a226170706c69636174696f6e2f766e642e67617465776179642e62756e646c652b6a736f6e222c227061796c6f6164223a2265794a6d62334a74595851694f6a4573496d6c7a6333566c63694936496a4178545467794e566b334f54524f51545a46557a6c4c4d4455324d546b34574556524969776963484a76616d566a64434936496a4178545467794e566b334f54524f51545a46557a6c4c4d4455324d546b345745565249697769644756755957353058326c6b496a6f694d44464e4f44493157545933564649345256517955553430557a4a614d7a4d78556b6f694c434a325a584a7a61573975496a6f784c434a7063334e315a575266595851694f6a45334f54557a4e6a6b324e7a45354e7a4973496e427662476c6a65534936496d52686447466959584e6c637a7063626941674c5342755957316c4f69427a614739775847346749434167644746696247566659574e6a5a584e7a4f6c787549434167494341675a47566d5958567364446f67636d56685a4678754943416749434167644746696247567a4f694237665678754969776963484a6c646d6c7664584e66633268684d6a5532496a7075645778734c434a6d636d567a6146396d62334a66637949364d7a59774d4377696232356663335268624755694f694a725a57567749697769636d567864576c795a584e665a6d5668644856795a584d694f6c73695957646c626e527a496977695a47463059574a686332567a49697769644746696247566659574e6a5a584e7a496c3073496e4e305958526c496a6f695a57356d62334a6a5a5751694c434a305a584e3063794936626e5673624377695957646c626e527a496a7037496e5276613256755832746c65534936496a526d5a546b314f475a6a4e5455334f5449354e6d51344e5464695a545a695a446c695a44686d4d47566c59325a6c4f4751314d6d51334d6d51795954637a4e4445795a4749794e3251335a6d557859574a6c4d446b694c434a306232746c626e4d694f6c7464665377696348566962476c6a5833567962484d694f6c74644c434a68645752706443493665794a7a644746305a57316c626e527a496a6f695a6e567362434973496e4a6c6447567564476c76626c396f496a6f784e6a68394c434a32615756335832526c5a6d6c75615852706232357a496a7030636e566c66513d3d222c227369676e617475726573223a5b7b226b65796964223a226563343134333834643038633131323936653033366230373063626636363537222c22736967223a22626d4f51386e38374b453342566c58676c765a456d424e554f7077666a535763577773487135774d4d31744b494965317566596f4e4e315a4e57475934374b4739313377664250566355756c6a72583252326a5542773d3d227d5d7d', '\x4956cc276760ebd5d92f0de1e2aa96c9fc90d1a0c2474c840e5cbf75a83b39d4', 'policy 1', 1795369671972),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 2, 2, '\x7b227061796c6f616454797065223a226170706c69636174696f6e2f766e642e67617465776179642e62756e646c652b6a736f6e222c227061796c6f6164223a2265794a6d62334a74595851694f6a4573496d6c7a6333566c63694936496a4178545467794e566b334f54524f51545a46557a6c4c4d4455324d546b34574556524969776963484a76616d566a64434936496a4178545467794e566b334f54524f51545a46557a6c4c4d4455324d546b345745565249697769644756755957353058326c6b496a6f694d44464e4f44493157545933564649345256517955553430557a4a614d7a4d78556b6f694c434a325a584a7a61573975496a6f794c434a7063334e315a575266595851694f6a45334f54557a4e6a6b324e7a4d774d445173496e427662476c6a65534936496d52686447466959584e6c637a7063626941674c5342755957316c4f69427a614739775847346749434167644746696247566659574e6a5a584e7a4f6942375a47566d5958567364446f67636d56685a437767644746696247567a4f69423763474635636d397362446f675a47567565583139584734694c434a77636d5632615739316331397a614745794e5459694f6949304f54553259324d794e7a59334e6a426c596d51315a446b795a6a426b5a54466c4d6d46684f545a6a4f575a6a4f54426b4d574577597a49304e7a526a4f4451775a54566a596d59334e5745344d32497a4f575130496977695a6e4a6c633268665a6d397958334d694f6a4d324d444173496d397558334e305957786c496a6f696132566c63434973496e4a6c63585670636d567a58325a6c59585231636d567a496a7062496d466e5a57353063794973496d52686447466959584e6c63794973496e5268596d786c5832466a5932567a63794a644c434a7a644746305a534936496d56755a6d39795932566b496977696447567a64484d694f6d353162477773496d466e5a5735306379493665794a306232746c626c39725a586b694f6949305a6d55354e54686d597a55314e7a6b794f545a6b4f445533596d5532596d5135596d51345a6a426c5a574e6d5a54686b4e544a6b4e7a4a6b4d6d45334d7a51784d6d52694d6a646b4e325a6c4d5746695a54413549697769644739725a57357a496a706258583073496e4231596d787059313931636d787a496a7062585377695958566b615851694f6e736963335268644756745a57353063794936496d5a31624777694c434a795a58526c626e527062323566614349364d54593466537769646d6c6c6431396b5a575a70626d6c30615739756379493664484a315a58303d222c227369676e617475726573223a5b7b226b65796964223a226563343134333834643038633131323936653033366230373063626636363537222c22736967223a22654f484549364d554343656b6355637954786a4d5a47314f3449596f667a67376372793533795a52544f7230665756754c6353334b746a6f655a516d6a52477753426f4c61586c35386235325a646d4f5656463643673d3d227d5d7d', '\xabff3e9335fe324362b5566af6ff577eee60b55835dc0fce7a70328f3b1d9070', 'policy 2', 1795369673004),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 3, 2, '\x7b227061796c6f616454797065223a226170706c69636174696f6e2f766e642e67617465776179642e62756e646c652b6a736f6e222c227061796c6f6164223a2265794a6d62334a74595851694f6a4573496d6c7a6333566c63694936496a4178545467794e566b334f54524f51545a46557a6c4c4d4455324d546b34574556524969776963484a76616d566a64434936496a4178545467794e566b334f54524f51545a46557a6c4c4d4455324d546b345745565249697769644756755957353058326c6b496a6f694d44464e4f44493157545933564649345256517955553430557a4a614d7a4d78556b6f694c434a325a584a7a61573975496a6f7a4c434a7063334e315a575266595851694f6a45334f54557a4e6a6b324e7a4d7a4d6a4d73496e427662476c6a65534936496d52686447466959584e6c637a7063626941674c5342755957316c4f69427a614739775847346749434167644746696247566659574e6a5a584e7a4f6942375a47566d5958567364446f67636d56685a437767644746696247567a4f69423763474635636d397362446f675a47567565583139584734694c434a77636d5632615739316331397a614745794e5459694f694a68596d5a6d4d3255354d7a4d315a6d557a4d6a517a4e6a4a694e5455324e6d466d4e6d5a6d4e5463335a57566c4e6a42694e5455344d7a566b597a426d59325533595463774d7a49345a6a4e694d5751354d446377496977695a6e4a6c633268665a6d397958334d694f6a4d324d444173496d397558334e305957786c496a6f696132566c63434973496e4a6c63585670636d567a58325a6c59585231636d567a496a7062496d466e5a57353063794973496d52686447466959584e6c63794973496e5268596d786c5832466a5932567a63794a644c434a7a644746305a534936496d56755a6d39795932566b496977696447567a64484d694f6d353162477773496d466e5a5735306379493665794a306232746c626c39725a586b694f6949305a6d55354e54686d597a55314e7a6b794f545a6b4f445533596d5532596d5135596d51345a6a426c5a574e6d5a54686b4e544a6b4e7a4a6b4d6d45334d7a51784d6d52694d6a646b4e325a6c4d5746695a54413549697769644739725a57357a496a706265794a705a434936496a4178545467794e566b3453304a5a4e304d7951303142523152514d445255546a6846496977696257466a496a6f694d4449314d4463355a574d784d546b34596a59774e545a6c596d46694d7a6c68597a49774d3249354e6a6b335a474a69596d51774d6d557a4e7a42694f4455324d6a686959325a6859544e6a5a47566d5a6a4a6c5a694973496d3568625755694f694a6a624746315a4755694c434a775a584a7a623234694f6949774d5530344d6a565a4e6a645555466b32556c6846526b52615130684454566b794e434973496d563463476c795a584e66595851694f6d35316247783958583073496e4231596d787059313931636d787a496a7062585377695958566b615851694f6e736963335268644756745a57353063794936496d5a31624777694c434a795a58526c626e527062323566614349364d54593466537769646d6c6c6431396b5a575a70626d6c30615739756379493664484a315a58303d222c227369676e617475726573223a5b7b226b65796964223a226563343134333834643038633131323936653033366230373063626636363537222c22736967223a2259764d576c73324b6550574c6d7546744376374550586a37397a5852783874344332396c39716148766f575564394331716247725a5659433075536c516b7533332b51495a4c35316c35332f496573633351515344773d3d227d5d7d', '\xf929bedcd208b594b5b1c4300b806dd835ad65128957c7f53a98a84f1cfb96c4', 'token made', 1795369673323);












INSERT INTO public.databases VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-1d24-bbbe-b404-c00dcf155d36', 'shop', NULL, NULL, NULL, NULL, 1795369671972);



INSERT INTO public.directory VALUES
	('api_key', '\x7a15742f65b471587bd5de501fa25e8b8915f29c4e5251304bfda264f48e149c', '01a2045f-18fa-c21d-a15e-a4c8be318712', NULL, '01a2045f-1c84-4e3c-b2c3-157aa87dd4f2'),
	('project', '\x01a2045f1d24aa8ceca66029829475d7', '01a2045f-18fa-c21d-a15e-a4c8be318712', '01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-1d24-aa8c-eca6-6029829475d7'),
	('agent_token', '\x1d4d71c350d86dbbb3ef59dbef2a75c6b7dd14f7f855f08e5c2f31b13e45d3f4', '01a2045f-18fa-c21d-a15e-a4c8be318712', '01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-226b-f1d8-2651-50d5804d550e'),
	('enrol_token', '\xcfbcc26c31e2323173f757121959ef6c62202526ed576e8b670c1e3d24197caa', '01a2045f-18fa-c21d-a15e-a4c8be318712', '01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-26b0-b63f-470e-eb17362216b1'),
	('gateway', '\x01a2045f28bc4cdac7ac3ad060be4024', '01a2045f-18fa-c21d-a15e-a4c8be318712', '01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024');






INSERT INTO public.enrol_tokens VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-26b0-b63f-470e-eb17362216b1', '\xcfbcc26c31e2323173f757121959ef6c62202526ed576e8b670c1e3d24197caa', 'edge', '01a2045f-18fa-b78d-8eb9-edfb22ca7844', 1795369674416, 1795373274416, 1795369674940, '01a2045f-28bc-4cda-c7ac-3ad060be4024');






INSERT INTO public.gateway_states VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', 1795369677172, 'waiting', NULL, NULL);



INSERT INTO public.gateways VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '01a2045f-28bc-4cda-c7ac-3ad060be4024', 'edge', '\x89ea2357699f6fca560026c229dfc8fb116b36f48ae914b054adcf28ed3158c9', 'cb9343e8a236e9c4f0817e44ec250f29', NULL, 1795369674940, 'active', NULL, '01a2045f-2703-6963-6321-a461b55e7bea', 1795369676554, 3, '\xb55b34d6cda9e5f7b6d1284e82c919e1e24b5b5fa52d2b7d26534e460c302503', 1795369677172, 'waiting', NULL, '1.0', NULL, NULL, '[]', '[]', '[]');



INSERT INTO public.leases VALUES
	('migrations', '00000000-0000-0000-0000-000000000000', 0, 1),
	('audit retention', '01a2045f-169b-aac4-a95e-f9fee55a9fef', 1795369690884, 1),
	('people sweep', '01a2045f-169b-aac4-a95e-f9fee55a9fef', 0, 2),
	('audit days', '01a2045f-169b-aac4-a95e-f9fee55a9fef', 0, 2);






INSERT INTO public.memberships VALUES
	('01a2045f-18fa-b78d-8eb9-edfb22ca7844', '01a2045f-18fa-c21d-a15e-a4c8be318712', 'owner', 1795369670906);



INSERT INTO public.migrations VALUES
	(1, '0001_people.sql', 'ac0ae4d267fcd62f5d474284a71c9033554c4485d3c5c04223903e8ae1968b11', 1),
	(2, '0002_projects.sql', 'd7532e085d939dc8a0740ad41351edcefacbff763085798323d5d10d038bb000', 1),
	(3, '0003_gateways.sql', '9d54530fda58b4d2428a2cb0f63c3c3d5954719b6a9abaed77384d1032f4442e', 1),
	(4, '0004_approvals.sql', 'a577c8fac81270b992082d2e450fe46a7396bf6dc552d490be7fcf0446387705', 1),
	(5, '0005_audit.sql', '84c27c31499f06b97b95facb82ebcd0ea58d81b4f1eac79161348d12cd135737', 1),
	(6, '0006_notifications.sql', '4bf519876f4340a7f3760cf4383927fc652c68117d004447d55ebdd9c362ef8c', 1),
	(10, '0010_token_keys.sql', '779d98d22e571a657afc65c84b448666acfc5c26d4b03286d42b11ec177b8b62', 1),
	(20, '0020_gateway_runs.sql', 'c7a282f39e6b07cf8db46230a7479bd290c8b9a220dbf92f621cbe9a6326b37d', 1);
























INSERT INTO public.org_events VALUES
	('01a2045f-18fa-c21d-a15e-a4c8be318712', 1, '01a2045f-1b1c-9cac-6e07-87673167438a', 1795369670906, 'organisation.founded', '01a2045f-18fa-b78d-8eb9-edfb22ca7844', NULL, '{"action":"organisation.founded","event":"01M825Y6RWKJP6W1W7CWRPEGWA","instance":"01M825Y6RW9GK97B8VFX3MRVHC","organisation":"01M825Y67TR8ET2QN4S2Z331RJ","person":"01M825Y67TPY6RXEFDZCHCMY24","project":"","seq":1,"target":"","ts":1795369670906}', '{"email":"ada@example.com","name":"Ada","role":"owner"}', '\x39882b53e6d2f4c6070dd66b870d4f4f5d6a2b5ae1bdd303ed1352de82a845d6', '\x14ec7a5a9e5e7e64d63a9ebfc5ea9b682e3a278ef7c5450fbf8f46ae3691f8cd'),
	('01a2045f-18fa-c21d-a15e-a4c8be318712', 2, '01a2045f-1d24-2808-77cc-d6554b03f620', 1795369671972, 'policy.published', '01a2045f-18fa-b78d-8eb9-edfb22ca7844', '01a2045f-1d24-aa8c-eca6-6029829475d7', '{"action":"policy.published","event":"01M825Y7945047FK6PAN5G7XH0","instance":"01M825Y6RW9GK97B8VFX3MRVHC","organisation":"01M825Y67TR8ET2QN4S2Z331RJ","person":"01M825Y67TPY6RXEFDZCHCMY24","project":"01M825Y794NA6ES9K056198XEQ","seq":2,"target":"1","ts":1795369671972}', '{"note":"the policy that a project begins with: everything can be read, nothing written"}', '\x54f903c52e899a4338795abe3c3aca3d56467c85b390e783c95e61704848e0b5', '\x00aad0252109a1354c7f2551ee7921ae44537791da409c6237691dd505f2de56'),
	('01a2045f-18fa-c21d-a15e-a4c8be318712', 3, '01a2045f-212c-1050-dc0f-e966633d9a5b', 1795369673004, 'policy.published', '01a2045f-18fa-b78d-8eb9-edfb22ca7844', '01a2045f-1d24-aa8c-eca6-6029829475d7', '{"action":"policy.published","event":"01M825Y89C218DR3Z9CSHKV6JV","instance":"01M825Y6RW9GK97B8VFX3MRVHC","organisation":"01M825Y67TR8ET2QN4S2Z331RJ","person":"01M825Y67TPY6RXEFDZCHCMY24","project":"01M825Y794NA6ES9K056198XEQ","seq":3,"target":"2","ts":1795369673004}', '{"note":"payroll is nobody''s business"}', '\x118ed027f8608aac4017aed0fbde25cf00686446412a1abb3170052793fcada1', '\x096a37fb15f8eda532341dd963ccee6f0b35785806fcf7bdbe50e641afafb11f'),
	('01a2045f-18fa-c21d-a15e-a4c8be318712', 4, '01a2045f-226b-700f-eb50-58dd324105d6', 1795369673323, 'token.made', '01a2045f-18fa-b78d-8eb9-edfb22ca7844', '01a2045f-1d24-aa8c-eca6-6029829475d7', '{"action":"token.made","event":"01M825Y8KBE07YPM2RVMS421EP","instance":"01M825Y6RW9GK97B8VFX3MRVHC","organisation":"01M825Y67TR8ET2QN4S2Z331RJ","person":"01M825Y67TPY6RXEFDZCHCMY24","project":"01M825Y794NA6ES9K056198XEQ","seq":4,"target":"01M825Y8KBY7C2CMAGTP04TN8E","ts":1795369673323}', '{"name":"claude"}', '\xe92fc84c9ee7f6e0c4d781fd28674660e502df6309c5f8ac3a06a91e5fd5357f', '\xfd3da3a5885ea6e8cb3241bd06d7e9743d2080bc70991d31433085ae79c04dc5'),
	('01a2045f-18fa-c21d-a15e-a4c8be318712', 5, '01a2045f-26b0-f4ab-651a-fa4a33a7526a', 1795369674416, 'gateway.token_made', '01a2045f-18fa-b78d-8eb9-edfb22ca7844', '01a2045f-1d24-aa8c-eca6-6029829475d7', '{"action":"gateway.token_made","event":"01M825Y9NGYJNPA6QT98STEMKA","instance":"01M825Y6RW9GK97B8VFX3MRVHC","organisation":"01M825Y67TR8ET2QN4S2Z331RJ","person":"01M825Y67TPY6RXEFDZCHCMY24","project":"01M825Y794NA6ES9K056198XEQ","seq":5,"target":"01M825Y9NGPRZME3QB2WV245NH","ts":1795369674416}', '{"name":"edge"}', '\xe1ccbbd1be77e469e4d99bf6c254ba224aebb8a506bb617cb7ff22c22ccf8834', '\x7476d766ecc60f43e506d28535b0be9003d8b79a979b65eb77cfa32a9598ca9f'),
	('01a2045f-18fa-c21d-a15e-a4c8be318712', 6, '01a2045f-28bc-78bf-c100-cf760c8ffe3d', 1795369674940, 'gateway.enrolled', '01a2045f-18fa-b78d-8eb9-edfb22ca7844', '01a2045f-1d24-aa8c-eca6-6029829475d7', '{"action":"gateway.enrolled","event":"01M825YA5WF2ZW206FER68ZZHX","instance":"01M825Y6RW9GK97B8VFX3MRVHC","organisation":"01M825Y67TR8ET2QN4S2Z331RJ","person":"01M825Y67TPY6RXEFDZCHCMY24","project":"01M825Y794NA6ES9K056198XEQ","seq":6,"target":"01M825YA5W9KDCFB1TT1GBWG14","ts":1795369674940}', '{"key":"cb9343e8a236e9c4f0817e44ec250f29","name":"edge"}', '\xd6f199c38b946d7e693292b42ddf42adf9c539a081877845fcbb81d262cea092', '\x1bcb272081040f16101db1bb960ec584bbf630ecf52481e58e1a72cf6047ab0f');



INSERT INTO public.org_heads VALUES
	('01a2045f-18fa-c21d-a15e-a4c8be318712', '01a2045f-1b1c-4c26-93ad-1b7f474c6e2c', 6, '\xe6899838dd3125407ef2161a365c4b0456eecba882140097296ad626afb074c4fec73dabb632306195f4dc5605068cf967100e9726dc6e98592233235108c5a9');



INSERT INTO public.organisations VALUES
	('01a2045f-18fa-c21d-a15e-a4c8be318712', 'Analytical Engines', 1795369670906, NULL, 'default');






INSERT INTO public.people VALUES
	('01a2045f-18fa-b78d-8eb9-edfb22ca7844', 'ada@example.com', 'ada@example.com', 'Ada', '$argon2id$v=19$m=19456,t=2,p=1$oyYCtxVMUwZ4dKpzhB3rMg$hjOX6Cbq0yLhoIcGj0Seza4Vz+VFwygFo6KyPRcj4/0', 1795369670906, 'UTC', 1795369670906, NULL);









INSERT INTO public.policy_versions VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 1, 'databases:
  - name: shop
    table_access:
      default: read
      tables: {}
', '\x585fc68534450d1634ca2966662e87f027094ca402338d283ac3c27226184af2', 'the policy that a project begins with: everything can be read, nothing written', 'created', '01a2045f-18fa-b78d-8eb9-edfb22ca7844', NULL, NULL, 1795369671972),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 2, 'databases:
  - name: shop
    table_access: {default: read, tables: {payroll: deny}}
', '\x48c4bde6ef95f5cedbe1ceacb379f6960f40de307dcf82641e73b62bc602f7a3', 'payroll is nobody''s business', 'api', '01a2045f-18fa-b78d-8eb9-edfb22ca7844', NULL, NULL, 1795369673004);






INSERT INTO public.projects VALUES
	('01a2045f-18fa-c21d-a15e-a4c8be318712', '01a2045f-1d24-aa8c-eca6-6029829475d7', 'Shop', 'shop', 1795369671972, 'enforced', NULL, 90, '{"fresh_for_s":3600,"on_stale":"keep","statements":"full","retention_h":168,"view_definitions":true,"public_urls":[],"tests":null,"second_publisher":false,"self_approval":false,"shape_grants":false,"approval_minutes":30}', NULL);






INSERT INTO public.rollups VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 20779, 17, 'agent', 'claude', 21, 1, 0, 60, 40),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 20779, 17, 'all', 'all', 21, 1, 0, 60, 40),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 20779, 17, 'database', 'shop', 21, 1, 0, 60, 40),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 20779, 17, 'decision', 'ALLOW', 20, 0, 0, 0, 0),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 20779, 17, 'decision', 'DENY', 1, 1, 0, 0, 0),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 20779, 17, 'rule', 'table_access', 1, 1, 0, 0, 0),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 20779, 17, 'table', 'public.orders', 20, 0, 0, 0, 0),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 20779, 17, 'table', 'public.payroll', 1, 1, 0, 0, 0),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 20779, 17, 'token', '01M825Y8KBY7C2CMAGTP04TN8E', 21, 1, 0, 60, 40);



INSERT INTO public.sessions VALUES
	('\xe8c91b41d2482258f0a94cc37b0440ad23b5f5c4b1f358df7505b42ba265c17a', '01a2045f-1b1c-fa97-0504-b81ef1f5bfec', '01a2045f-18fa-b78d-8eb9-edfb22ca7844', '01a2045f-18fa-c21d-a15e-a4c8be318712', 1795369671452, 1795369671452, 1795974471452, 1795369671452, 'link', '127.0.0.1', 'python-httpx/0.28.1');






INSERT INTO public.statements VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '248b9b718f6f1445', 'SELECT amount FROM payroll WHERE id = ?', NULL, 1795369675058, 1795369675058),
	('01a2045f-1d24-aa8c-eca6-6029829475d7', '9f4e01efb327133f', 'SELECT count ( * ) FROM orders WHERE id = ?', NULL, 1795369675058, 1795369675058);









INSERT INTO public.throttles VALUES
	('\xaa76e79c35585aea0210d7b97b2067f2fc65b5c9905ecd05ee13804b146beaf8', 1, 0, 1795369670777);



INSERT INTO public.token_keys VALUES
	('01a2045f-1d24-aa8c-eca6-6029829475d7', 'a939d5ff');






INSERT INTO public.trust_documents VALUES
	(1, '\x7b227061796c6f616454797065223a226170706c69636174696f6e2f766e642e67617465776179642e74727573742b6a736f6e222c227061796c6f6164223a2265794a325a584a7a61573975496a6f784c434a7063334e315a5849694f6949774d5530344d6a565a4e7a6b30546b453252564d35537a41314e6a45354f46684655534973496e4a76623351694f694a305430646d4d6e6c7a65455636595870424e4664795a484e4859586472656d597964565a6b576a526b65464e5859564d76576c705052575a7250534973496d746c65584d694f6c7437496e4231596d7870597949364969395363533947656e6c73646e566a52553957536d31335745464b64486850596b4d325a6d3178654374494d4530314b33466f526b45334d584d394969776964584e6c6379493657794a696457356b624755694c434a6d636d567a6147356c63334d694c434a68593273694c434a6a6232356d62476c6a64434973496e5a6c636d5270593351694c434a3059576c7564434973496e4a6c5a6e567a595777694c434a6c626e4a766247316c626e516958537769626d39305832466d64475679496a6f784f54557a4d4451354e6a63784f54637966563073496e527a496a6f784e7a6b314d7a59354e6a63784f5463794c434a755a58683058334a76623351694f6d353162477839222c227369676e617475726573223a5b7b226b65796964223a223663653831616139373432653764303132316462633431346637643831633436222c22736967223a223976524a4a494d444a47686f6a3356534f7479614e644d514a6a7844454461715961765a355171455a55732f7469534b3536544379624141394151464e315a482f666c427754636c6d2b6273595066537750413743673d3d227d5d7d', 1795369671972);



ALTER TABLE ONLY public.agent_tokens
    ADD CONSTRAINT agent_tokens_pkey PRIMARY KEY (project_id, token_id);



ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (org_id, key_id);



ALTER TABLE ONLY public.approval_claims
    ADD CONSTRAINT approval_claims_pkey PRIMARY KEY (project_id, query_id);



ALTER TABLE ONLY public.approval_tokens
    ADD CONSTRAINT approval_tokens_pkey PRIMARY KEY (project_id, token_id);



ALTER TABLE ONLY public.approval_votes
    ADD CONSTRAINT approval_votes_pkey PRIMARY KEY (project_id, approval_id, person_id);



ALTER TABLE ONLY public.approvals_pending
    ADD CONSTRAINT approvals_pending_pkey PRIMARY KEY (project_id, grant_key);



ALTER TABLE ONLY public.approvals
    ADD CONSTRAINT approvals_pkey PRIMARY KEY (project_id, approval_id);



ALTER TABLE ONLY public.audit_20261122
    ADD CONSTRAINT audit_20261122_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_20261123
    ADD CONSTRAINT audit_20261123_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_20261124
    ADD CONSTRAINT audit_20261124_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_20261125
    ADD CONSTRAINT audit_20261125_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_20261126
    ADD CONSTRAINT audit_20261126_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_20261127
    ADD CONSTRAINT audit_20261127_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_20261128
    ADD CONSTRAINT audit_20261128_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_20261129
    ADD CONSTRAINT audit_20261129_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_checkpoints
    ADD CONSTRAINT audit_checkpoints_pkey PRIMARY KEY (project_id, gateway_id, instance, size);



ALTER TABLE ONLY public.audit_days
    ADD CONSTRAINT audit_days_pkey PRIMARY KEY (day);



ALTER TABLE ONLY public.audit_details_20261122
    ADD CONSTRAINT audit_details_20261122_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_details_20261123
    ADD CONSTRAINT audit_details_20261123_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_details_20261124
    ADD CONSTRAINT audit_details_20261124_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_details_20261125
    ADD CONSTRAINT audit_details_20261125_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_details_20261126
    ADD CONSTRAINT audit_details_20261126_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_details_20261127
    ADD CONSTRAINT audit_details_20261127_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_details_20261128
    ADD CONSTRAINT audit_details_20261128_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_details_20261129
    ADD CONSTRAINT audit_details_20261129_pkey PRIMARY KEY (project_id, gateway_id, instance, seq);



ALTER TABLE ONLY public.audit_findings
    ADD CONSTRAINT audit_findings_pkey PRIMARY KEY (project_id, finding_id);



ALTER TABLE ONLY public.audit_heads
    ADD CONSTRAINT audit_heads_pkey PRIMARY KEY (project_id, gateway_id, instance);



ALTER TABLE ONLY public.audit_tiles
    ADD CONSTRAINT audit_tiles_pkey PRIMARY KEY (project_id, gateway_id, instance, tile);



ALTER TABLE ONLY public.bundle_heads
    ADD CONSTRAINT bundle_heads_pkey PRIMARY KEY (project_id);



ALTER TABLE ONLY public.bundles
    ADD CONSTRAINT bundles_pkey PRIMARY KEY (project_id, version);



ALTER TABLE ONLY public.catalog_heads
    ADD CONSTRAINT catalog_heads_pkey PRIMARY KEY (project_id, database_name);



ALTER TABLE ONLY public.catalogs
    ADD CONSTRAINT catalogs_pkey PRIMARY KEY (project_id, database_name, sha256);



ALTER TABLE ONLY public.challenges
    ADD CONSTRAINT challenges_pkey PRIMARY KEY (challenge);



ALTER TABLE ONLY public.databases
    ADD CONSTRAINT databases_pkey PRIMARY KEY (project_id, database_id);



ALTER TABLE ONLY public.databases
    ADD CONSTRAINT databases_project_id_name_key UNIQUE (project_id, name);



ALTER TABLE ONLY public.directory
    ADD CONSTRAINT directory_pkey PRIMARY KEY (kind, lookup);



ALTER TABLE ONLY public.engines
    ADD CONSTRAINT engines_pkey PRIMARY KEY (project_id, replica);



ALTER TABLE ONLY public.enrol_tokens
    ADD CONSTRAINT enrol_tokens_pkey PRIMARY KEY (project_id, token_id);



ALTER TABLE ONLY public.gateway_runs
    ADD CONSTRAINT gateway_runs_pkey PRIMARY KEY (project_id, gateway_id, run);



ALTER TABLE ONLY public.gateway_states
    ADD CONSTRAINT gateway_states_pkey PRIMARY KEY (project_id, gateway_id, since_ms);



ALTER TABLE ONLY public.gateways
    ADD CONSTRAINT gateways_pkey PRIMARY KEY (project_id, gateway_id);



ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (name);



ALTER TABLE ONLY public.mcp_clients
    ADD CONSTRAINT mcp_clients_pkey PRIMARY KEY (project_id, client_key);



ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_pkey PRIMARY KEY (person_id, org_id);



ALTER TABLE ONLY public.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (number);



ALTER TABLE ONLY public.notification_channels
    ADD CONSTRAINT notification_channels_pkey PRIMARY KEY (org_id, channel_id);



ALTER TABLE ONLY public.notification_deliveries
    ADD CONSTRAINT notification_deliveries_pkey PRIMARY KEY (org_id, delivery_id);



ALTER TABLE ONLY public.notification_due
    ADD CONSTRAINT notification_due_pkey PRIMARY KEY (org_id);



ALTER TABLE ONLY public.oidc_identities
    ADD CONSTRAINT oidc_identities_pkey PRIMARY KEY (provider_id, subject);



ALTER TABLE ONLY public.oidc_providers
    ADD CONSTRAINT oidc_providers_pkey PRIMARY KEY (provider_id);



ALTER TABLE ONLY public.one_time_links
    ADD CONSTRAINT one_time_links_pkey PRIMARY KEY (link_hash);



ALTER TABLE ONLY public.org_checkpoints
    ADD CONSTRAINT org_checkpoints_pkey PRIMARY KEY (org_id, size);



ALTER TABLE ONLY public.org_events
    ADD CONSTRAINT org_events_pkey PRIMARY KEY (org_id, seq);



ALTER TABLE ONLY public.org_heads
    ADD CONSTRAINT org_heads_pkey PRIMARY KEY (org_id);



ALTER TABLE ONLY public.organisations
    ADD CONSTRAINT organisations_pkey PRIMARY KEY (org_id);



ALTER TABLE ONLY public.passkeys
    ADD CONSTRAINT passkeys_pkey PRIMARY KEY (credential_id);



ALTER TABLE ONLY public.people
    ADD CONSTRAINT people_email_key_key UNIQUE (email_key);



ALTER TABLE ONLY public.people
    ADD CONSTRAINT people_pkey PRIMARY KEY (person_id);



ALTER TABLE ONLY public.policy_drafts
    ADD CONSTRAINT policy_drafts_pkey PRIMARY KEY (project_id, person_id);



ALTER TABLE ONLY public.policy_proposals
    ADD CONSTRAINT policy_proposals_pkey PRIMARY KEY (project_id, proposal_id);



ALTER TABLE ONLY public.policy_versions
    ADD CONSTRAINT policy_versions_pkey PRIMARY KEY (project_id, version);



ALTER TABLE ONLY public.project_roles
    ADD CONSTRAINT project_roles_pkey PRIMARY KEY (project_id, person_id);



ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_org_id_name_key_key UNIQUE (org_id, name_key);



ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (org_id, project_id);



ALTER TABLE ONLY public.replicas
    ADD CONSTRAINT replicas_pkey PRIMARY KEY (replica);



ALTER TABLE ONLY public.rollups
    ADD CONSTRAINT rollups_pkey PRIMARY KEY (project_id, day, hour, kind, value);



ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (session_hash);



ALTER TABLE ONLY public.shape_grants
    ADD CONSTRAINT shape_grants_pkey PRIMARY KEY (project_id, shape_grant_id);



ALTER TABLE ONLY public.statements
    ADD CONSTRAINT statements_pkey PRIMARY KEY (project_id, fingerprint);



ALTER TABLE ONLY public.taint_history
    ADD CONSTRAINT taint_history_pkey PRIMARY KEY (project_id, event_id);



ALTER TABLE ONLY public.taints
    ADD CONSTRAINT taints_pkey PRIMARY KEY (project_id, grant_key, source);



ALTER TABLE ONLY public.throttles
    ADD CONSTRAINT throttles_pkey PRIMARY KEY (throttle_key);



ALTER TABLE ONLY public.token_keys
    ADD CONSTRAINT token_keys_pkey PRIMARY KEY (project_id);



ALTER TABLE ONLY public.token_use
    ADD CONSTRAINT token_use_pkey PRIMARY KEY (project_id, token_id, day);



ALTER TABLE ONLY public.trust_documents
    ADD CONSTRAINT trust_documents_pkey PRIMARY KEY (version);



CREATE INDEX approvals_by_claim ON public.approvals USING btree (project_id, claimed_by);



CREATE INDEX approvals_by_key ON public.approvals USING btree (project_id, grant_key, approval_id);



CREATE INDEX approvals_by_status ON public.approvals USING btree (project_id, status, approval_id);



CREATE INDEX audit_20261122_keys ON public.audit_20261122 USING gin (keys) WITH (fastupdate='on');



CREATE INDEX audit_20261122_query ON public.audit_20261122 USING btree (project_id, query_id);



CREATE INDEX audit_20261122_ts ON public.audit_20261122 USING btree (project_id, ts);



CREATE INDEX audit_20261123_keys ON public.audit_20261123 USING gin (keys) WITH (fastupdate='on');



CREATE INDEX audit_20261123_query ON public.audit_20261123 USING btree (project_id, query_id);



CREATE INDEX audit_20261123_ts ON public.audit_20261123 USING btree (project_id, ts);



CREATE INDEX audit_20261124_keys ON public.audit_20261124 USING gin (keys) WITH (fastupdate='on');



CREATE INDEX audit_20261124_query ON public.audit_20261124 USING btree (project_id, query_id);



CREATE INDEX audit_20261124_ts ON public.audit_20261124 USING btree (project_id, ts);



CREATE INDEX audit_20261125_keys ON public.audit_20261125 USING gin (keys) WITH (fastupdate='on');



CREATE INDEX audit_20261125_query ON public.audit_20261125 USING btree (project_id, query_id);



CREATE INDEX audit_20261125_ts ON public.audit_20261125 USING btree (project_id, ts);



CREATE INDEX audit_20261126_keys ON public.audit_20261126 USING gin (keys) WITH (fastupdate='on');



CREATE INDEX audit_20261126_query ON public.audit_20261126 USING btree (project_id, query_id);



CREATE INDEX audit_20261126_ts ON public.audit_20261126 USING btree (project_id, ts);



CREATE INDEX audit_20261127_keys ON public.audit_20261127 USING gin (keys) WITH (fastupdate='on');



CREATE INDEX audit_20261127_query ON public.audit_20261127 USING btree (project_id, query_id);



CREATE INDEX audit_20261127_ts ON public.audit_20261127 USING btree (project_id, ts);



CREATE INDEX audit_20261128_keys ON public.audit_20261128 USING gin (keys) WITH (fastupdate='on');



CREATE INDEX audit_20261128_query ON public.audit_20261128 USING btree (project_id, query_id);



CREATE INDEX audit_20261128_ts ON public.audit_20261128 USING btree (project_id, ts);



CREATE INDEX audit_20261129_keys ON public.audit_20261129 USING gin (keys) WITH (fastupdate='on');



CREATE INDEX audit_20261129_query ON public.audit_20261129 USING btree (project_id, query_id);



CREATE INDEX audit_20261129_ts ON public.audit_20261129 USING btree (project_id, ts);



CREATE INDEX memberships_by_organisation ON public.memberships USING btree (org_id, person_id);



CREATE INDEX notification_deliveries_by_channel ON public.notification_deliveries USING btree (org_id, channel_id, delivery_id);



CREATE INDEX notification_deliveries_due ON public.notification_deliveries USING btree (org_id, next_ms);



CREATE INDEX oidc_identities_by_person ON public.oidc_identities USING btree (person_id);



CREATE INDEX oidc_providers_by_organisation ON public.oidc_providers USING btree (org_id);



CREATE INDEX one_time_links_by_organisation ON public.one_time_links USING btree (org_id);



CREATE INDEX passkeys_by_person ON public.passkeys USING btree (person_id);



CREATE INDEX sessions_by_person ON public.sessions USING btree (person_id);



CREATE INDEX shape_grants_by_shape ON public.shape_grants USING btree (project_id, shape);




