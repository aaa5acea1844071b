\set ECHO none
-- Errors of queries and of users: PostgreSQL's own codes, and a session that
-- sorts on afterwards.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.e AS SELECT i AS id, (i * 7919) % 50021 AS k, 'some text of no interest ' || i AS t FROM generate_series(1, 100000) i;
ANALYZE gs.e;
CREATE ROLE regress_gpusort_user;

SELECT * FROM no_plan();

-- settings out of range, unknown, or not the user's to change
SELECT throws_ok(statement, '22023', NULL, statement) FROM (VALUES
	('SET gpusort.enable = maybe'), ('SET gpusort.force = 2'), ('SET gpusort.engine = abacus'), ('SET gpusort.engine = '''''),
	('SET gpusort.min_rows = -1'), ('SET gpusort.min_rows = 3000000000'), ('SET gpusort.min_rows = few'),
	('SET gpusort.setup_cost = -1'), ('SET gpusort.row_cost = -0.1'), ('SET gpusort.row_cost = dear'), ('SET gpusort.log_decisions = often')) v (statement);
SELECT throws_ok(format('SET gpusort.%s', setting), '55P02', NULL, 'a session cannot SET gpusort.' || setting) FROM (VALUES
	('devices = ''0'''), ('device_memory = ''1GB'''), ('host_memory = ''1GB'''), ('staging_memory = ''64MB''')) v (setting);
SELECT throws_ok('SET gpusort.no_such_setting = 1', '42602', NULL, 'there is no setting of another name');
SELECT lives_ok(statement, statement) FROM (VALUES
	('SET gpusort.engine = auto'), ('SET gpusort.engine = cuda'), ('SET gpusort.engine = host'), ('SET gpusort.min_rows = 0'),
	('SET gpusort.setup_cost = 0'), ('SET gpusort.row_cost = 0'), ('SET gpusort.log_decisions = off')) v (statement);
RESET gpusort.engine;
RESET gpusort.min_rows;
RESET gpusort.setup_cost;
RESET gpusort.row_cost;
\set VERBOSITY sqlstate
SET ROLE regress_gpusort_user;
SET gpusort.enable = off;
SET gpusort.force = on;
SET gpusort.staging_memory = '64MB';
ALTER SYSTEM SET gpusort.devices = 'all';
RESET ROLE;
RESET gpusort.enable;
RESET gpusort.force;
\set VERBOSITY default

-- an error below the sort, at the first row, in the middle, at the last
SET gpusort.force = on;
SET gpusort.min_rows = 0;
SELECT ok(gs.forced_uses('SELECT id FROM gs.e WHERE 100 / (id - 50000) < 1000 ORDER BY k'), 'the plan of an error has a GpuSort');
SELECT throws_ok(format('SELECT id FROM gs.e WHERE 100 / (id - %s) < 1000 ORDER BY k', n), '22012', NULL, 'an error at row ' || n)
FROM (VALUES (1), (50000), (100000)) v (n);
SELECT throws_ok('SELECT id FROM gs.e ORDER BY 100 / (id - 77777)', '22012', NULL, 'an error in the key');
SELECT throws_ok('SELECT id FROM gs.e ORDER BY (t || id)::int', '22P02', NULL, 'an error in a cast');
SELECT is(gs.compare('SELECT id, t FROM gs.e ORDER BY k, id'), 'same', 'a sort after errors below');

-- above it
SELECT throws_ok('SELECT 100 / (id - 50000) FROM (SELECT id FROM gs.e ORDER BY id DESC OFFSET 0) s', '22012', NULL, 'an error while rows are given out');
SELECT is(gs.compare('SELECT id, t FROM gs.e ORDER BY k, id'), 'same', 'a sort after errors above');

-- a hundred of both, in one transaction, while a cursor is open: what they hold comes back
CREATE FUNCTION gs.fail(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	r record;
	failures int := 0;
BEGIN
	FOR i IN 1 .. 50 LOOP
		BEGIN
			FOR r IN EXECUTE query LOOP
			END LOOP;
		EXCEPTION WHEN division_by_zero THEN
			failures := failures + 1;
		END;
	END LOOP;
	RETURN failures;
END $$;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM gs.e ORDER BY k, id;
SELECT is(cardinality(gs.fetch('c', 'FORWARD 1000')), 1000, 'a cursor is open');
SELECT is(gs.fail('SELECT id FROM gs.e WHERE id <= 30000 AND 100 / (id - 30000) < 1000 ORDER BY k'), 50, 'fifty errors below a sort');
SELECT is(gs.fail('SELECT 100 / (id - 29999) FROM (SELECT id FROM gs.e WHERE id <= 30000 ORDER BY id OFFSET 0) s'), 50, 'fifty errors above a sort');
SELECT is(gs.fetch('c', 'FORWARD ALL'), (gs.native_rows('SELECT id FROM gs.e ORDER BY k, id'))[1001:], 'the cursor goes on');
COMMIT;
SELECT is(gs.compare('SELECT id, t FROM gs.e ORDER BY k, id'), 'same', 'a sort after all of them');

-- a deferred failure of the whole transaction
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM gs.e ORDER BY k, id;
SELECT cardinality(gs.fetch('c', 'FORWARD 1000')) AS fetched \gset
\set VERBOSITY sqlstate
SELECT 1 / 0;
FETCH c;
\set VERBOSITY default
ROLLBACK;
SELECT is(:fetched, 1000, 'a cursor in a transaction that fails');
SELECT is(gs.compare('SELECT id, t FROM gs.e ORDER BY k, id'), 'same', 'a sort in the next transaction');
RESET gpusort.force;
RESET gpusort.min_rows;
DROP ROLE regress_gpusort_user;

SELECT * FROM finish();
