-- The database of the allowed statements: the sample database without what makes PostgreSQL choose hostile code for plain
-- operators and casts (those have their refusals in deny/), and with an analyst's warehouse beside it.

DROP OPERATOR sales.= (text, int); DROP OPERATOR !! (NONE, text); DROP OPERATOR ~~> (int, text); DROP FUNCTION initcap(int);
DROP TABLE ranged; DROP TYPE guess_range; DROP VIEW soft_view; DROP TABLE softs; DROP CAST (soft AS box);
DROP TABLE weights; DROP CAST (weight AS money); DROP TABLE guesses; DROP TYPE guessed; DROP DOMAIN guess;

CREATE EXTENSION vector;
CREATE SCHEMA tpcds; CREATE SCHEMA mart; CREATE SCHEMA "Läger";

-- in the shape of TPC-DS, the columns that its questions ask for
CREATE TABLE tpcds.date_dim (
    d_date_sk int PRIMARY KEY, d_date date, d_month_seq int, d_week_seq int, d_quarter_name text, d_year int, d_dow int, d_moy int, d_dom int,
    d_qoy int, d_day_name text
);
CREATE TABLE tpcds.time_dim (t_time_sk int PRIMARY KEY, t_hour int, t_minute int, t_meal_time text);
CREATE TABLE tpcds.item (
    i_item_sk int PRIMARY KEY, i_item_id text, i_item_desc text, i_current_price numeric(7,2), i_wholesale_cost numeric(7,2), i_brand_id int,
    i_brand text, i_class_id int, i_class text, i_category_id int, i_category text, i_manufact_id int, i_manufact text, i_size text,
    i_color text, i_units text, i_manager_id int, i_product_name text
);
CREATE TABLE tpcds.customer (
    c_customer_sk int PRIMARY KEY, c_customer_id text, c_current_cdemo_sk int, c_current_hdemo_sk int, c_current_addr_sk int, c_salutation text,
    c_first_name text, c_last_name text, c_preferred_cust_flag text, c_birth_month int, c_birth_year int, c_birth_country text, c_login text,
    c_email_address text
);
CREATE TABLE tpcds.customer_address (
    ca_address_sk int PRIMARY KEY, ca_city text, ca_county text, ca_state text, ca_zip text, ca_country text, ca_gmt_offset numeric
);
CREATE TABLE tpcds.customer_demographics (
    cd_demo_sk int PRIMARY KEY, cd_gender text, cd_marital_status text, cd_education_status text, cd_purchase_estimate int, cd_credit_rating text,
    cd_dep_count int
);
CREATE TABLE tpcds.household_demographics (hd_demo_sk int PRIMARY KEY, hd_buy_potential text, hd_dep_count int, hd_vehicle_count int);
CREATE TABLE tpcds.store (
    s_store_sk int PRIMARY KEY, s_store_id text, s_store_name text, s_number_employees int, s_market_id int, s_company_name text, s_city text,
    s_county text, s_state text, s_zip text, s_gmt_offset numeric
);
CREATE TABLE tpcds.warehouse (w_warehouse_sk int PRIMARY KEY, w_warehouse_name text, w_warehouse_sq_ft int, w_state text);
CREATE TABLE tpcds.promotion (p_promo_sk int PRIMARY KEY, p_channel_email text, p_channel_event text, p_channel_dmail text);
CREATE TABLE tpcds.store_sales (
    ss_sold_date_sk int, ss_sold_time_sk int, ss_item_sk int, ss_customer_sk int, ss_cdemo_sk int, ss_hdemo_sk int, ss_addr_sk int, ss_store_sk int,
    ss_promo_sk int, ss_ticket_number int, ss_quantity int, ss_wholesale_cost numeric(7,2), ss_list_price numeric(7,2), ss_sales_price numeric(7,2),
    ss_ext_discount_amt numeric(7,2), ss_ext_sales_price numeric(7,2), ss_ext_wholesale_cost numeric(7,2), ss_ext_list_price numeric(7,2),
    ss_coupon_amt numeric(7,2), ss_net_paid numeric(7,2), ss_net_profit numeric(7,2)
);
CREATE TABLE tpcds.store_returns (
    sr_returned_date_sk int, sr_item_sk int, sr_customer_sk int, sr_cdemo_sk int, sr_store_sk int, sr_ticket_number int, sr_return_quantity int,
    sr_return_amt numeric(7,2), sr_net_loss numeric(7,2)
);
CREATE TABLE tpcds.catalog_sales (
    cs_sold_date_sk int, cs_ship_date_sk int, cs_bill_customer_sk int, cs_bill_cdemo_sk int, cs_item_sk int, cs_promo_sk int, cs_warehouse_sk int,
    cs_order_number int, cs_quantity int, cs_list_price numeric(7,2), cs_sales_price numeric(7,2), cs_coupon_amt numeric(7,2),
    cs_ext_discount_amt numeric(7,2), cs_ext_sales_price numeric(7,2), cs_net_profit numeric(7,2)
);
CREATE TABLE tpcds.web_sales (
    ws_sold_date_sk int, ws_ship_date_sk int, ws_item_sk int, ws_bill_customer_sk int, ws_warehouse_sk int, ws_web_site_sk int,
    ws_order_number int, ws_quantity int, ws_sales_price numeric(7,2), ws_ext_sales_price numeric(7,2), ws_ext_discount_amt numeric(7,2),
    ws_ext_ship_cost numeric(7,2), ws_net_paid numeric(7,2), ws_net_profit numeric(7,2)
);
CREATE TABLE tpcds.web_returns (wr_order_number int, wr_item_sk int, wr_return_amt numeric(7,2));
CREATE TABLE tpcds.inventory (inv_date_sk int, inv_item_sk int, inv_warehouse_sk int, inv_quantity_on_hand int);

-- what product analysts, operators and map makers keep
CREATE TABLE mart.users (id int PRIMARY KEY, signed_up timestamptz NOT NULL, plan text, referrer_id int, country text, email text);
CREATE TABLE mart.actions (id bigserial PRIMARY KEY, user_id int, at timestamptz NOT NULL, name text NOT NULL, properties jsonb DEFAULT '{}');
CREATE TABLE mart.subscriptions (user_id int, during daterange, plan text, price numeric(8,2));
CREATE TABLE mart.bookings (id int PRIMARY KEY, room int, during tstzrange, guests int);
CREATE TABLE mart.opening_hours (shop text, open_at datemultirange);
CREATE TABLE mart.documents (id int PRIMARY KEY, title text, body jsonb, tags text[], words tsvector, embedding vector(3));
CREATE TABLE mart.places (id int PRIMARY KEY, name text, at point, area polygon, route path, around circle, bounds box, address inet);
CREATE TABLE mart.metrics (host text, at timestamptz, cpu float8, memory bigint, tags jsonb);
CREATE TABLE mart.edges (source int, target int, weight numeric);
CREATE TABLE mart.parts (id int PRIMARY KEY, parent_id int, name text, quantity int, cost numeric);
CREATE TABLE mart.settings (name text PRIMARY KEY, value text, changed timestamptz);
CREATE TABLE mart.stock (sku text PRIMARY KEY, quantity int, "order" int, changed timestamptz);
CREATE TABLE mart.deliveries (sku text, quantity int);
CREATE TABLE mart.measured (a float8, b float8, c int, g text);
CREATE TABLE "Läger"."Bestände" ("Nr." int, "Größe (cm)" numeric, "select" text, "数量" int);
CREATE VIEW mart.active_users AS SELECT id, plan, country FROM mart.users WHERE plan <> 'none';
CREATE MATERIALIZED VIEW mart.daily_actions AS SELECT at::date AS day, name, count(*) AS n FROM mart.actions GROUP BY 1, 2;
COMMENT ON TABLE mart.users IS 'people who signed up'; COMMENT ON COLUMN mart.users.plan IS 'free, pro or team';
CREATE FUNCTION mart.full_price(mart.subscriptions) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1.price * 12';

INSERT INTO mart.users SELECT n, timestamptz '2024-01-01 00:00+00' + n * interval '3 days', (ARRAY['free','pro','team'])[n % 3 + 1], nullif(n / 3, 0),
    (ARRAY['DE','FR','JP'])[n % 3 + 1], 'user' || n || '@example.org' FROM generate_series(1, 30) AS n;
INSERT INTO mart.actions (user_id, at, name, properties)
    SELECT n % 30 + 1, timestamptz '2024-01-02 00:00+00' + n * interval '7 hours', (ARRAY['visit','cart','buy'])[n % 3 + 1],
    jsonb_build_object('page', '/' || n % 5, 'value', n, 'items', jsonb_build_array(n, n + 1)) FROM generate_series(1, 200) AS n;
INSERT INTO mart.subscriptions VALUES (1, '[2024-01-01,2024-03-01)', 'pro', 9), (1, '[2024-03-01,)', 'team', 19), (2, '[2024-02-01,2024-06-01)', 'pro', 9);
INSERT INTO mart.bookings VALUES (1, 1, '[2024-01-01 10:00+00,2024-01-01 12:00+00)', 2), (2, 1, '[2024-01-01 13:00+00,2024-01-01 14:00+00)', 4);
INSERT INTO mart.opening_hours VALUES ('north', '{[2024-01-01,2024-01-05), [2024-01-08,2024-01-12)}');
INSERT INTO mart.documents VALUES (1, 'Lamps', '{"kind": "note", "price": 12.5, "tags": ["a", "b"], "author": {"name": "Ada", "age": 36}, "lines": [{"sku": "x", "n": 2}, {"sku": "y", "n": 5}]}',
    '{light,desk}', to_tsvector('english', 'lamps shine brightly'), '[1,2,3]'),
    (2, 'Desks', '{"kind": "memo", "tags": []}', '{wood}', to_tsvector('english', 'a wooden desk'), '[3,2,1]');
INSERT INTO mart.places VALUES (1, 'tower', '(1,1)', '((0,0),(0,2),(2,2),(2,0))', '[(0,0),(1,1),(2,0)]', '<(1,1),2>', '(2,2),(0,0)', '10.1.2.3/24'),
    (2, 'harbour', '(5,5)', '((4,4),(4,6),(6,6),(6,4))', '[(4,4),(6,6)]', '<(5,5),1>', '(6,6),(4,4)', '192.168.0.7');
INSERT INTO mart.metrics SELECT 'host' || n % 3, timestamptz '2024-05-01 00:00+00' + n * interval '90 s', n % 10 / 10.0, n * 1000, '{"dc": "a"}' FROM generate_series(1, 100) AS n;
INSERT INTO mart.edges VALUES (1, 2, 1), (2, 3, 2), (3, 4, 1), (4, 2, 5), (1, 4, 9);
INSERT INTO mart.parts VALUES (1, NULL, 'bicycle', 1, 0), (2, 1, 'wheel', 2, 30), (3, 2, 'spoke', 36, 0.5), (4, 1, 'frame', 1, 120);
INSERT INTO mart.settings VALUES ('theme', 'dark', '2024-01-01 00:00+00');
INSERT INTO mart.stock VALUES ('lamp', 5, 1, NULL), ('desk', 0, 2, NULL); INSERT INTO mart.deliveries VALUES ('lamp', 3), ('pen', 100);
INSERT INTO mart.measured SELECT n, n * 2 + n % 3, n % 4, 'g' || n % 2 FROM generate_series(1, 20) AS n;
INSERT INTO "Läger"."Bestände" VALUES (1, 12.5, 'x', 3);
REFRESH MATERIALIZED VIEW mart.daily_actions;
ANALYZE;
