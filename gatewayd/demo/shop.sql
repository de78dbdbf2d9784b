-- The demo's shop: made-up people, and the same rows on every machine (no random(), no clock).

CREATE TABLE customers (
    id          integer PRIMARY KEY,
    name        text NOT NULL,
    email       text NOT NULL UNIQUE,
    tax_id      text NOT NULL,
    city        text NOT NULL,
    country     text NOT NULL,
    created_at  timestamptz NOT NULL
);

CREATE TABLE products (
    id        integer PRIMARY KEY,
    sku       text NOT NULL UNIQUE,
    name      text NOT NULL,
    category  text NOT NULL,
    price     numeric(10, 2) NOT NULL CHECK (price > 0),
    in_stock  integer NOT NULL CHECK (in_stock >= 0)
);

CREATE TABLE orders (
    id           integer PRIMARY KEY,
    customer_id  integer NOT NULL REFERENCES customers,
    status       text NOT NULL CHECK (status IN ('open', 'paid', 'shipped', 'returned', 'cancelled')),
    ordered_at   timestamptz NOT NULL,
    note         text
);
CREATE INDEX orders_customer_id ON orders (customer_id);

CREATE TABLE order_lines (
    order_id    integer NOT NULL REFERENCES orders,
    line        smallint NOT NULL,
    product_id  integer NOT NULL REFERENCES products,
    quantity    integer NOT NULL CHECK (quantity > 0),
    unit_price  numeric(10, 2) NOT NULL,
    PRIMARY KEY (order_id, line)
);

CREATE TABLE audit_log (
    id        bigint PRIMARY KEY,
    at        timestamptz NOT NULL,
    who       text NOT NULL,
    action    text NOT NULL,
    order_id  integer REFERENCES orders
);

CREATE TABLE secrets (
    name   text PRIMARY KEY,
    value  text NOT NULL
);

COMMENT ON TABLE customers IS 'People who ordered at least once';
COMMENT ON COLUMN customers.tax_id IS 'Personal data';
COMMENT ON TABLE secrets IS 'Keys of the shop''s own services: no agent has any business here';

INSERT INTO customers
SELECT n,
       first || ' ' || last,
       lower(first) || '.' || lower(last) || n || '@example.com',
       upper(substr(md5('tax' || n), 1, 2)) || lpad((n::bigint * 7919 % 100000000)::text, 8, '0'),
       (ARRAY ['Lisbon', 'Porto', 'Lyon', 'Nantes', 'Leipzig', 'Bremen', 'Turin', 'Bari', 'Ghent', 'Graz'])[1 + n * 7 % 10],
       (ARRAY ['PT', 'PT', 'FR', 'FR', 'DE', 'DE', 'IT', 'IT', 'BE', 'AT'])[1 + n * 7 % 10],
       timestamptz '2023-01-01 08:00+00' + n * interval '11 hours'
FROM (SELECT n,
             (ARRAY ['Ada', 'Bruno', 'Clara', 'Dario', 'Elin', 'Femi', 'Greta', 'Hugo', 'Ines', 'Jonas', 'Kaja', 'Luis', 'Mara'])
                 [1 + n % 13] AS first,
             (ARRAY ['Almeida', 'Berger', 'Costa', 'Dupont', 'Engel', 'Ferrari', 'Grau', 'Horn', 'Ivens', 'Jansen', 'Klein'])
                 [1 + n * 3 % 11] AS last
      FROM generate_series(1, 2000) AS n) AS people;

INSERT INTO products
SELECT n,
       'SKU-' || lpad(n::text, 5, '0'),
       (ARRAY ['Oak', 'Linen', 'Steel', 'Glass', 'Wool', 'Cork', 'Clay', 'Brass'])[1 + n % 8] || ' '
           || (ARRAY ['lamp', 'chair', 'table', 'vase', 'blanket', 'shelf', 'mirror', 'clock', 'bowl'])[1 + n % 9],
       (ARRAY ['light', 'seating', 'tables', 'decoration', 'textiles', 'storage', 'decoration', 'decoration', 'kitchen'])[1 + n % 9],
       (495 + n * 1237 % 24000) / 100.0,
       n * 31 % 140
FROM generate_series(1, 180) AS n;

INSERT INTO orders
SELECT n,
       1 + n * 1009 % 2000,
       CASE WHEN n > 5900 THEN (ARRAY ['open', 'paid'])[1 + n % 2]
            WHEN n % 29 = 0 THEN 'returned'
            WHEN n % 37 = 0 THEN 'cancelled'
            ELSE 'shipped' END,
       timestamptz '2024-01-01 09:00+00' + n * interval '2 hours 53 minutes',
       CASE WHEN n % 41 = 0 THEN 'leave with the neighbour' END
FROM generate_series(1, 6000) AS n;

INSERT INTO order_lines
SELECT o.id, line, p.id, 1 + (o.id + line) % 4, p.price
FROM orders AS o
CROSS JOIN LATERAL generate_series(1, 1 + o.id % 4) AS line
JOIN products AS p ON p.id = 1 + (o.id * 17 + line * 53) % 180;

INSERT INTO audit_log
SELECT row_number() OVER (ORDER BY o.ordered_at, o.id),
       o.ordered_at + interval '4 hours',
       (ARRAY ['till', 'warehouse', 'web'])[1 + o.id % 3],
       'order ' || o.status,
       o.id
FROM orders AS o;

INSERT INTO secrets
SELECT name, 'demo-' || md5(name)
FROM unnest(ARRAY ['payment provider key', 'mail server password', 'backup encryption key']) AS name;

ANALYZE;

-- The role that gatewayd connects as. It can do what the policy may ever allow and nothing more: the policy is not the only wall.
-- `secrets` is not granted at all.
REVOKE ALL ON DATABASE :"database" FROM PUBLIC;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT CONNECT ON DATABASE :"database" TO shop_agent;
GRANT USAGE ON SCHEMA public TO shop_agent;
GRANT SELECT ON customers, products, orders, order_lines, audit_log TO shop_agent;
GRANT INSERT, UPDATE, DELETE ON orders TO shop_agent;
