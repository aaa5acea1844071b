-- star.sql - a small star schema: two facts, five dimensions, an inventory; data with skew, so that estimates
-- of joins by several columns are wrong.  bench/workloads star makes a database of it; star-queries.sql has the
-- queries.
DROP SCHEMA IF EXISTS star CASCADE; CREATE SCHEMA star; SET search_path = star;
CREATE TABLE dates (d_sk int PRIMARY KEY, d date, yr int, mon int, dow int);
INSERT INTO dates SELECT i, date '2019-01-01' + i, extract(year FROM date '2019-01-01' + i), extract(month FROM date '2019-01-01' + i), i % 7 FROM generate_series(0, 2555) i;
CREATE TABLE items (i_sk int PRIMARY KEY, i_id text, brand text, category text, maker int, price numeric(7,2));
INSERT INTO items SELECT i, 'ITEM' || lpad(i::text, 10, '0'), 'brand ' || i % 950, 'category ' || i % 10, i % 1000, (i * 37 % 10000) / 100.0 FROM generate_series(1, 18000) i;
CREATE TABLE customers (c_sk int PRIMARY KEY, addr_sk int, demo_sk int, name text);
INSERT INTO customers SELECT i, 1 + i * 7 % 50000, 1 + i * 13 % 20000, 'name ' || md5(i::text) FROM generate_series(1, 100000) i;
CREATE TABLE addresses (a_sk int PRIMARY KEY, state text, city text, zip text);
INSERT INTO addresses SELECT i, chr(65 + i % 26) || chr(65 + i / 26 % 2), 'city ' || i % 700, lpad((i * 7919 % 99999)::text, 5, '0') FROM generate_series(1, 50000) i;
CREATE TABLE stores (s_sk int PRIMARY KEY, s_name text, s_state text, employees int);
INSERT INTO stores SELECT i, 'store ' || i, CASE WHEN i % 3 = 0 THEN 'TN' ELSE 'AL' END, 200 + i * 11 % 100 FROM generate_series(1, 12) i;
CREATE TABLE sales (date_sk int, item_sk int, cust_sk int, store_sk int, demo_sk int, ticket int8, qty int, wholesale numeric(7,2), list numeric(7,2), price numeric(7,2), discount numeric(7,2), tax numeric(7,2), paid numeric(7,2), profit numeric(7,2));
INSERT INTO sales SELECT abs(hashint8extended(i / 10, 1)) % 1825, 1 + (abs(hashint8extended(i, 2)) % 18000), CASE WHEN i % 30 = 0 THEN NULL ELSE 1 + (power((abs(hashint8extended(i / 10, 3)) % 1000000) / 1e6, 2) * 99999)::int END, 1 + abs(hashint8extended(i / 10, 4)) % 12, 1 + abs(hashint8extended(i / 10, 5)) % 20000, i / 10,
 1 + i % 100, (i * 31 % 10000) / 100.0, (i * 37 % 20000) / 100.0, (i * 41 % 20000) / 100.0, (i % 1000) / 100.0, (i % 900) / 100.0, (i * 43 % 20000) / 100.0, (i * 47 % 20000) / 100.0 - 100 FROM generate_series(1, 3000000) i;
CREATE TABLE returns (date_sk int, item_sk int, cust_sk int, ticket int8, qty int, amount numeric(7,2));
INSERT INTO returns SELECT date_sk + 1 + (ticket % 90)::int, item_sk, cust_sk, ticket, qty, price FROM sales WHERE abs(hashint8extended(ticket * 100 + item_sk, 9)) % 10 = 0;
CREATE TABLE inventory (date_sk int, item_sk int, house int, on_hand int);
INSERT INTO inventory SELECT w * 7, 1 + 2 * i, h, abs(hashint8extended(w * 100000 + i * 10 + h, 3)) % 1000 FROM generate_series(0, 259) w, generate_series(0, 2999) i, generate_series(1, 3) h;
VACUUM (FREEZE, ANALYZE) dates, items, customers, addresses, stores, sales, returns, inventory;
