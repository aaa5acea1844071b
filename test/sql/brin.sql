\set ECHO none
-- The first rows of a table, from the ranges of blocks that can have them by a BRIN index: the same rows as by reading all
-- of it, whatever the index says of a range or does not, and of how few ranges.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SET max_parallel_workers_per_gather = 0;
SET enable_bitmapscan = off;
SET TimeZone = 'UTC';
-- a GPU sorts all of so few rows in less time than some of these orders take by an index
SET gpusort.engine = host;

-- Tables: about 20 rows a page
CREATE TABLE gs.brin (id int, ts timestamptz, d date, r int, few int, n numeric, c text COLLATE "C", e text COLLATE "en-x-icu", nil int, nils int, f float8, pad text) WITH (autovacuum_enabled = off);
INSERT INTO gs.brin
SELECT i, timestamptz '2024-01-01' + i * interval '7 s', date '2024-01-01' + i / 100, (i * 7919::bigint) % 10007, i * 7919::bigint % 10007 % 5, (i / 3)::numeric / 7,
	to_char(i, 'FM000000') || 'x', CASE i % 2 WHEN 0 THEN 'a' ELSE 'A' END || to_char(i / 10, 'FM000000') || 'é',
	CASE WHEN i / 500 % 7 = 3 THEN NULL ELSE i * 31::bigint % 5003 END, CASE WHEN i % 50 = 0 THEN NULL ELSE i END,
	CASE i % 1000 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' WHEN 2 THEN '-0' ELSE i / 8.0 END, repeat('p', 300)
FROM generate_series(1, 6000) i;
CREATE INDEX brin_most ON gs.brin USING brin (few, ts, d, n, c, e, nil, nils) WITH (pages_per_range = 2);
CREATE INDEX brin_multi ON gs.brin USING brin (r int4_minmax_multi_ops, f float8_minmax_multi_ops) WITH (pages_per_range = 3);
VACUUM ANALYZE gs.brin;

-- how many ranges are read, and are there, by the service and, where rows are few, by PostgreSQL's sort; NULL: no index is used
CREATE FUNCTION gs.brin_ranges(query text) RETURNS text LANGUAGE sql AS
$$ SELECT (n->>'Block Ranges Read') || ' of ' || (n->>'Block Ranges') FROM gs.node(query) n $$;
CREATE FUNCTION gs.brin_chosen(query text) RETURNS bool LANGUAGE sql SET gpusort.enable = on SET gpusort.setup_cost = 0 AS
$$ SELECT gs.plan(query) LIKE '%Block Ranges: by BRIN index%' $$;
CREATE FUNCTION gs.brin_chosen_rows(query text) RETURNS text[] LANGUAGE sql SET gpusort.enable = on SET gpusort.setup_cost = 0 AS $$ SELECT gs.rows(query) $$;

-- 'same' when the rows are, by an index, whoever sorts them
CREATE FUNCTION gs.brin_compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	native text[] := gs.native_rows(query);
	result text := gs.difference(native, gs.forced_rows(query));
BEGIN
	IF gs.brin_ranges(query) IS NULL THEN
		RETURN 'no index is used';
	ELSIF result <> 'same' THEN
		RETURN 'by the service: ' || result;
	END IF;
	RETURN gs.difference(native, gs.brin_chosen_rows(query));
END $$;

SELECT * FROM no_plan();

-- which ranges are read
SELECT is(gs.brin_ranges('SELECT * FROM gs.brin ORDER BY ' || clause), ranges, clause)
FROM (VALUES ('ts LIMIT 10', '1 of 158'), ('ts DESC LIMIT 10', '1 of 158'), ('ts DESC, id LIMIT 10', '1 of 158'), ('d DESC LIMIT 10', '1 of 158'),
	  ('d, id LIMIT 10', '3 of 158'), ('n DESC LIMIT 10', '1 of 158'), ('c DESC LIMIT 10', '1 of 158'), ('e DESC LIMIT 10', '1 of 158'), ('nils LIMIT 10', '1 of 158'), ('nils DESC LIMIT 10', '10 of 158'),
	  ('nils DESC NULLS LAST LIMIT 10', '1 of 158'), ('few LIMIT 10', '2 of 158'), ('few, id LIMIT 10', '158 of 158')) v (clause, ranges);
SELECT cmp_ok(split_part(gs.brin_ranges('SELECT * FROM gs.brin ORDER BY ' || clause), ' ', 1)::int, '<=', most, clause || ': no more ranges than rows are wanted')
FROM (VALUES ('r LIMIT 1', 1), ('r LIMIT 10', 10), ('r DESC LIMIT 20', 20), ('nil LIMIT 3', 4), ('nil DESC NULLS LAST LIMIT 5', 6), ('f DESC LIMIT 1', 1)) v (clause, most);
SELECT is(gs.brin_ranges('SELECT * FROM gs.brin ORDER BY ' || clause), NULL, 'not by ' || clause)
FROM (VALUES ('id LIMIT 10'), ('ts LIMIT ALL'), ('ts'), ('ts::date LIMIT 10'), ('n::float8 LIMIT 10'), ('c COLLATE "en-x-icu" LIMIT 10'), ('e COLLATE "C" LIMIT 10'), ('pad, ts LIMIT 10'), ('ts LIMIT 10001'),
	  ('ts FETCH FIRST 10 ROWS WITH TIES')) v (clause);
SELECT is(gs.brin_chosen(query), true, 'chosen: ' || query)
FROM unnest(ARRAY['SELECT * FROM gs.brin ORDER BY ts DESC LIMIT 10', 'SELECT id FROM gs.brin WHERE few <> 2 ORDER BY r LIMIT 3', 'SELECT upper(c), id + 1 FROM gs.brin ORDER BY ts, id LIMIT 20']) query;
SELECT is(gs.brin_chosen(query), false, 'not chosen: ' || query)
FROM unnest(ARRAY['SELECT * FROM gs.brin ORDER BY r DESC LIMIT 5000', 'SELECT * FROM gs.brin ORDER BY few DESC, ts LIMIT 10', 'SELECT * FROM gs.brin WHERE pad = ''q'' ORDER BY r LIMIT 10']) query;
SELECT is((SELECT array_agg(trim(line)) FROM unnest(string_to_array(gs.forced_plan('SELECT * FROM gs.brin ORDER BY ts DESC LIMIT 10'), E'\n')) line WHERE line <> ''),
	ARRAY['Limit', '->  Custom Scan (GpuSort)', 'Sort Key: ts DESC', 'Block Ranges: by BRIN index brin_most', '->  Seq Scan on brin'], 'EXPLAIN');
SELECT is(gs.brin_ranges('SELECT * FROM gs.brin ORDER BY ts LIMIT 10'), NULL, 'nor where rows do not come by the page') FROM set_config('gpusort.page_scan', 'off', false);
RESET gpusort.page_scan;

-- the rows
CREATE FUNCTION gs.brin_orders() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	query text;
	key text;
	result text;
BEGIN
	FOREACH key IN ARRAY ARRAY['few', 'ts', 'd', 'n', 'c', 'e', 'nil', 'nils', 'r', 'f'] LOOP
		FOR query IN SELECT format('SELECT %s FROM gs.brin WHERE %s ORDER BY %s%s%s LIMIT %s OFFSET %s', CASE WHEN behind = '' THEN key ELSE '*' END, condition, key, direction, behind, lim, off)
			FROM unnest(ARRAY['', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST']) direction,
				(VALUES ('', 1, 0, 'true'), (', id', 25, 3, 'id % 3 = 1'), ('', 400, 40, 'true'), (', id', 60, 0, 'upper(c) > ''00500'' AND nil < 3000')) v (behind, lim, off, condition) LOOP
			result := gs.brin_compare(query);
			IF result <> 'same' THEN
				RETURN NEXT query || ': ' || result;
			END IF;
		END LOOP;
	END LOOP;
END $$;
SELECT is(array(SELECT gs.brin_orders()), '{}', 'summarised');
SELECT is(gs.compare_results('SELECT id FROM gs.brin ORDER BY ts DESC LIMIT 0'), 'same', 'LIMIT 0');
SELECT is(gs.brin_compare('SELECT id, ctid, tableoid FROM gs.brin ORDER BY ts DESC LIMIT 10'), 'same', 'system columns');
SELECT is(gs.brin_compare('SELECT upper(c) || id, id + 1 FROM gs.brin WHERE length(e) > 3 ORDER BY ts DESC LIMIT 10'), 'same', 'what is computed');
SELECT is(gs.brin_compare('SELECT id FROM gs.brin WHERE ts < timestamptz ''2024-01-01 12:00'' ORDER BY ts DESC LIMIT 10'), 'same', 'a condition on the key');
SELECT is(gs.brin_compare('SELECT id FROM gs.brin WHERE id IN (SELECT id FROM gs.brin WHERE few = 1 AND id < 900) ORDER BY ts DESC LIMIT 10'), 'no index is used', 'below a join');
SELECT is(gs.brin_compare('SELECT id FROM gs.brin WHERE id < (SELECT max(id) - 100 FROM gs.brin) ORDER BY ts DESC LIMIT 10'), 'same', 'an InitPlan');

-- what the index does not say, and what has come since
INSERT INTO gs.brin SELECT id + 6000, ts + interval '2 day', d - 30, r + 5, few, -n, 'y' || c, 'z' || e, nil, nils + 20000, f, pad FROM gs.brin WHERE id % 9 = 0;
SELECT is(gs.brin_ranges('SELECT * FROM gs.brin ORDER BY ts LIMIT 10'), '19 of 176', 'ranges behind the last that is summarised');
SELECT is(array(SELECT gs.brin_orders()), '{}', 'a tail that is not summarised');
SELECT brin_desummarize_range('gs.brin_most', 40), brin_desummarize_range('gs.brin_multi', 40), brin_desummarize_range('gs.brin_most', 0) \g /dev/null
SELECT is(gs.brin_ranges('SELECT * FROM gs.brin ORDER BY ts LIMIT 10'), '20 of 176', 'ranges in the middle that are not summarised');
SELECT is(array(SELECT gs.brin_orders()), '{}', 'others that are not');
UPDATE gs.brin SET ts = ts + interval '100 days', r = -r, nil = NULL, nils = 77777 WHERE id IN (3, 4000, 5999);
UPDATE gs.brin SET e = 'Zz', c = NULL, f = NULL WHERE id % 2001 = 7;
SELECT is(array(SELECT gs.brin_orders()), '{}', 'rows that were updated');
DELETE FROM gs.brin WHERE id BETWEEN 5500 AND 6000 OR id % 2 = 0;
SELECT is(array(SELECT gs.brin_orders()), '{}', 'rows that were deleted');
VACUUM gs.brin;
SELECT is(array(SELECT gs.brin_orders()), '{}', 'after a vacuum');
INSERT INTO gs.brin SELECT i, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, repeat('p', 300) FROM generate_series(30000, 30500) i;
SELECT brin_summarize_new_values('gs.brin_most') \g /dev/null
SELECT is(array(SELECT gs.brin_orders()), '{}', 'ranges with NULLs alone');
TRUNCATE gs.brin;
SELECT is(gs.brin_compare('SELECT id FROM gs.brin ORDER BY ts DESC LIMIT 10'), 'same', 'an empty table');

-- read again
CREATE TABLE gs.brin_log AS SELECT i AS id, timestamp '2024-01-01' + i * interval '1 min' AS at, i % 4 AS who, repeat('x', 200) AS pad FROM generate_series(1, 6000) i;
CREATE INDEX brin_log_at ON gs.brin_log USING brin (at) WITH (pages_per_range = 1);
ANALYZE gs.brin_log;
SET enable_memoize = off;
SET enable_material = off;
SELECT is(gs.compare_results(format('SELECT w, id FROM generate_series(0, 5) w CROSS JOIN LATERAL (SELECT id FROM gs.brin_log WHERE who = w %% 4 ORDER BY at DESC LIMIT %s) s ORDER BY 1, 2', lim)), 'same', 'LATERAL, LIMIT ' || lim)
FROM unnest(ARRAY['3', 'w', 'NULLIF(w, 3)']) lim;
SELECT is(gs.compare_results('SELECT w, (SELECT id FROM gs.brin_log WHERE who = w % 4 AND id < 5000 - w ORDER BY at DESC LIMIT 1 OFFSET w) FROM generate_series(0, 9) w'), 'same', 'a SubPlan');
SELECT is(gs.compare_results('SELECT * FROM (SELECT id, at FROM gs.brin_log ORDER BY at DESC LIMIT 30) s ORDER BY at LIMIT 7'), 'same', 'in a subquery');
SELECT is(gs.compare_results('(SELECT id FROM gs.brin_log ORDER BY at LIMIT 3) UNION ALL (SELECT id FROM gs.brin_log ORDER BY at DESC LIMIT 3)'), 'same', 'two of them');
SELECT is(gs.compare_results('SELECT id FROM gs.brin_log a JOIN (SELECT id AS b FROM gs.brin_log ORDER BY at DESC LIMIT 20) s ON id = b ORDER BY 1'), 'same', 'below a join');
SELECT is(gs.compare_results('SELECT id FROM gs.brin_log ORDER BY at DESC LIMIT 5 FOR UPDATE'), 'same', 'rows that are locked');
SELECT is(gs.compare_results('WITH d AS (DELETE FROM gs.brin_log WHERE id > 6100 RETURNING id) SELECT id FROM gs.brin_log ORDER BY at DESC LIMIT 5'), 'same', 'beside a DELETE');
RESET enable_memoize;
RESET enable_material;

-- a cursor's rows are those of its beginning; one that goes back
SET gpusort.force = on;
BEGIN;
DECLARE back SCROLL CURSOR FOR SELECT id FROM gs.brin_log ORDER BY at DESC LIMIT 8;
INSERT INTO gs.brin_log VALUES (7000, '2099-01-01', 1, '');
UPDATE gs.brin_log SET at = at - interval '1 year' WHERE id = 5998;
SELECT brin_summarize_new_values('gs.brin_log_at') \g /dev/null
SELECT is(gs.fetch('back', 'FORWARD 5'), ARRAY['(6000)', '(5999)', '(5998)', '(5997)', '(5996)'], 'a cursor');
SELECT is(gs.fetch('back', 'BACKWARD 2'), ARRAY['(5997)', '(5998)'], 'backward');
SELECT is(gs.fetch('back', 'FORWARD ALL'), ARRAY['(5997)', '(5996)', '(5995)', '(5994)', '(5993)'], 'to its end');
ROLLBACK;
RESET gpusort.force;

-- all transactions see what they are to see
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT is(gs.compare_results('SELECT id FROM gs.brin_log ORDER BY at DESC LIMIT 5'), 'same', 'serializable');
SELECT is((SELECT count(*) > 0 FROM pg_locks WHERE mode = 'SIReadLock' AND locktype = 'relation' AND relation = 'gs.brin_log'::regclass), true, 'which locks the table');
ROLLBACK;

-- one scan is counted, however many ranges it reads; counts are reported, and begin again, between transactions
BEGIN;
SELECT pg_stat_get_xact_numscans('gs.brin_log'::regclass) AS before \gset
SELECT gs.forced_rows('SELECT id FROM gs.brin_log ORDER BY at DESC LIMIT 500') \g /dev/null
SELECT is(pg_stat_get_xact_numscans('gs.brin_log'::regclass) - :before, 1::bigint, 'one scan');
COMMIT;

-- a plan that is kept: with the index, without it, with a LIMIT that is not known
SET plan_cache_mode = force_generic_plan;
SET gpusort.force = on;
PREPARE kept AS SELECT id FROM gs.brin_log ORDER BY at DESC LIMIT 3;
PREPARE wanted(bigint) AS SELECT id FROM gs.brin_log ORDER BY at DESC LIMIT $1;
PREPARE owner(int) AS SELECT id FROM gs.brin_log WHERE who = $1 ORDER BY at DESC LIMIT 3;
SELECT is(gs.rows('EXECUTE kept'), ARRAY['(6000)', '(5999)', '(5998)'], 'prepared');
SELECT is(gs.rows('EXECUTE wanted(2)'), ARRAY['(6000)', '(5999)'], 'a parameter is the LIMIT');
SELECT is(gs.rows('EXECUTE wanted(NULL)') = gs.native_rows('SELECT id FROM gs.brin_log ORDER BY at DESC'), true, 'no LIMIT');
SELECT is(gs.rows('EXECUTE owner(' || who || ')'), rows, 'a parameter in a condition') FROM (VALUES (1, ARRAY['(5997)', '(5993)', '(5989)']), (3, ARRAY['(5999)', '(5995)', '(5991)'])) v (who, rows);
SELECT is(gs.plan('EXECUTE kept') LIKE '%brin_log_at%', true, 'by the index');
DROP INDEX gs.brin_log_at;
SELECT is(gs.plan('EXECUTE kept') LIKE '%brin_log_at%', false, 'which is dropped');
SELECT is(gs.rows('EXECUTE kept'), ARRAY['(6000)', '(5999)', '(5998)'], 'and the plan with it');
DEALLOCATE ALL;
RESET plan_cache_mode;
RESET gpusort.force;

-- indexes of some rows, of expressions, of other kinds; of types of one order
CREATE INDEX brin_part ON gs.brin_log USING brin (at) WITH (pages_per_range = 2) WHERE who = 1;
SELECT is(gs.brin_ranges('SELECT id FROM gs.brin_log ORDER BY at DESC LIMIT 5'), NULL, 'the index has other rows');
SELECT is(gs.brin_compare('SELECT id FROM gs.brin_log WHERE who = 1 AND id % 3 > 0 ORDER BY at DESC LIMIT 5'), 'same', 'the index has the rows');
DROP INDEX gs.brin_part;
CREATE INDEX brin_expression ON gs.brin_log USING brin ((-id), ((who + id)::text COLLATE "C")) WITH (pages_per_range = 2);
SELECT is(gs.brin_compare('SELECT id, pad FROM gs.brin_log ORDER BY -id LIMIT 5'), 'same', 'an expression');
SELECT is(gs.brin_compare('SELECT id FROM gs.brin_log ORDER BY (who + id)::text COLLATE "C" DESC, id LIMIT 5'), 'same', 'another');
SELECT is(gs.brin_ranges('SELECT id FROM gs.brin_log ORDER BY id LIMIT 5'), NULL, 'not that');
DROP INDEX gs.brin_expression;
CREATE INDEX brin_bloom ON gs.brin_log USING brin (at timestamp_bloom_ops, id);
SELECT is(gs.brin_ranges('SELECT id FROM gs.brin_log ORDER BY at LIMIT 5'), NULL, 'a Bloom filter');
SELECT is(gs.brin_compare('SELECT id FROM gs.brin_log ORDER BY id DESC LIMIT 5'), 'same', 'the column behind it, in one range');
CREATE TABLE gs.brin_types AS SELECT i, i::varchar(9) AS v, i::smallint AS s, ('10.0.' || i / 100 || '.' || i % 100)::inet AS ip, int4range(i, i + 5) AS span, md5(i::text)::uuid AS u, i * interval '1 h' AS iv,
	('n' || i)::name AS na, (i / 10)::char(5) AS ch, i % 2 = 0 AS b, decode(lpad(to_hex(i), 8, '0'), 'hex') AS by, repeat('w', 2000) || i AS wide
FROM generate_series(1, 3000) i;
ALTER TABLE gs.brin_types ALTER wide SET STORAGE main;
UPDATE gs.brin_types SET wide = wide;
CREATE INDEX brin_types_all ON gs.brin_types USING brin (v, s, ip inet_minmax_ops, span, u, iv, na, ch, by) WITH (pages_per_range = 2);
CREATE INDEX brin_types_multi ON gs.brin_types USING brin (iv interval_minmax_multi_ops, u uuid_minmax_multi_ops, ip inet_minmax_multi_ops, s int2_minmax_multi_ops) WITH (pages_per_range = 3);
CREATE INDEX brin_types_wide ON gs.brin_types USING brin (wide) WITH (pages_per_range = 16);
VACUUM ANALYZE gs.brin_types;
SELECT is(gs.brin_compare(format('SELECT i FROM gs.brin_types ORDER BY %s%s, i LIMIT 12', key, direction)), 'same', key || direction)
FROM unnest(ARRAY['v', 's', 'ip', 'u', 'iv', 'na', 'ch', 'by', 'wide']) key, unnest(ARRAY['', ' DESC', ' NULLS FIRST']) direction;
DROP INDEX gs.brin_types_all;
SELECT is(gs.brin_compare(format('SELECT i FROM gs.brin_types ORDER BY %s%s, i LIMIT 12', key, direction)), 'same', key || direction || ', by several intervals')
FROM unnest(ARRAY['s', 'ip', 'u', 'iv']) key, unnest(ARRAY['', ' DESC', ' NULLS FIRST']) direction;
CREATE INDEX brin_types_span ON gs.brin_types USING brin (span);
SELECT is(gs.brin_ranges('SELECT i FROM gs.brin_types ORDER BY span LIMIT 12'), NULL, 'what spans values has no least');

-- temporary tables, partitions, children, views, policies
CREATE TEMP TABLE brin_temp AS SELECT i AS id, i / 2 AS k, repeat('x', 100) AS pad FROM generate_series(1, 5000) i;
CREATE INDEX ON brin_temp USING brin (k) WITH (pages_per_range = 1);
ANALYZE brin_temp;
SELECT is(gs.brin_compare('SELECT * FROM brin_temp ORDER BY k DESC, id LIMIT 9'), 'same', 'a temporary table');
CREATE TABLE gs.brin_parts (id int, k int, pad text) PARTITION BY RANGE (k);
CREATE TABLE gs.brin_parts1 PARTITION OF gs.brin_parts FOR VALUES FROM (0) TO (2000);
CREATE TABLE gs.brin_parts2 PARTITION OF gs.brin_parts FOR VALUES FROM (2000) TO (5000);
CREATE INDEX ON gs.brin_parts USING brin (k) WITH (pages_per_range = 1);
INSERT INTO gs.brin_parts SELECT i, i, repeat('x', 100) FROM generate_series(0, 4999) i;
ANALYZE gs.brin_parts;
SELECT is(gs.compare_results('SELECT id FROM gs.brin_parts ' || clause), 'same', 'partitions ' || clause) FROM unnest(ARRAY['ORDER BY k LIMIT 9', 'ORDER BY k DESC LIMIT 9', 'WHERE k > 3000 ORDER BY k LIMIT 9']) clause;
SELECT is(gs.brin_compare('SELECT id FROM gs.brin_parts2 ORDER BY k LIMIT 9'), 'same', 'one of them');
CREATE TABLE gs.brin_child () INHERITS (gs.brin_log);
INSERT INTO gs.brin_child VALUES (9999, '2098-01-01', 1, '');
CREATE INDEX ON gs.brin_log USING brin (at);
SELECT is(gs.compare_results('SELECT id FROM gs.brin_log ORDER BY at DESC LIMIT 3'), 'same', 'a table with a child');
SELECT is(gs.brin_compare('SELECT id FROM ONLY gs.brin_log ORDER BY at DESC LIMIT 3'), 'same', 'without it');
CREATE VIEW gs.brin_view AS SELECT id, at AS moment FROM ONLY gs.brin_log WHERE who <> 2;
SELECT is(gs.brin_compare('SELECT id FROM gs.brin_view ORDER BY moment DESC LIMIT 3'), 'same', 'a view');
SELECT is(gs.compare_results('SELECT id FROM gs.brin_log TABLESAMPLE bernoulli (50) REPEATABLE (3) ORDER BY at DESC LIMIT 3'), 'same', 'a sample');
SELECT is(gs.brin_compare('SELECT id FROM ONLY gs.brin_log WHERE now() IS NULL ORDER BY at DESC LIMIT 3'), 'no index is used', 'a condition without a column');
SELECT is(gs.brin_ranges('SELECT id FROM ONLY gs.brin_log WHERE random() >= 0 ORDER BY at DESC LIMIT 3'), NULL, 'a volatile condition');

DROP VIEW gs.brin_view;
DROP TABLE gs.brin, gs.brin_log, gs.brin_child, gs.brin_types, brin_temp, gs.brin_parts;
SELECT * FROM finish();
