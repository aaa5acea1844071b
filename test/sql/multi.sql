\set ECHO none
-- Several sort columns: exact and inexact ones in every position, many of
-- them, expressions, and the same column twice.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.multi AS
SELECT i AS id, i % 2 = 0 AS b, (i % 5)::int2 AS s, i % 17 - 8 AS i, (i % 3)::bigint << 40 AS l,
	   CASE WHEN i % 7 > 0 THEN (i % 7)::float8 / 3 END AS f,
	   CASE WHEN i % 6 > 0 THEN 'a common prefix, longer than any key holds, of the values in this column of text, '
		   || 'which makes every comparison go to the end of it and so on and on and on, until there is this: ' || i % 6 END COLLATE "C" AS t,
	   ('k' || i % 11) COLLATE "C" AS u,
	   (i % 4)::numeric / 7 AS n, decode(lpad(to_hex(i % 13), 2, '0'), 'hex') AS y,
	   md5((i % 9)::text)::uuid AS g, '2020-02-28'::date + i % 5 AS d
FROM generate_series(1, 3000) i ORDER BY md5(i::text);

CREATE FUNCTION gs.add_one(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN i + 1; END';
CREATE DOMAIN gs.small AS int CHECK (VALUE < 1000000);
CREATE DOMAIN gs.word AS text COLLATE "C";

CREATE TABLE gs.order_by (ordinal serial, words text);
INSERT INTO gs.order_by (words) VALUES
	-- an inexact column, then others
	('t, id'), ('t DESC, id DESC'), ('t, i, id'), ('t NULLS FIRST, f DESC NULLS LAST, s, id'), ('u, l, t, id'),
	('n, t, id DESC'), ('y, n, u, t, id'), ('u DESC, id'), ('n DESC, i DESC, id'), ('t, t, id'), ('u, t, u, id'),
	-- exact columns only
	('b, id'), ('b DESC, s, i DESC, id'), ('l, f NULLS FIRST, id'), ('g, d DESC, id'), ('d, b, s DESC, l, id DESC'),
	-- exact first
	('i, t, id'), ('f DESC, u, n DESC, id'), ('g, t DESC NULLS LAST, id'), ('s, n, y DESC, id'), ('id, t'), ('i, i DESC, id'),
	-- ten columns and more
	('b, s DESC, i, l DESC, f, d, g, u, t, n, y, id'),
	('t DESC, u DESC, n, y, g DESC, d, f NULLS FIRST, l, i, s, b, id'),
	('b, b DESC, s, s DESC, i, l, f, d, g, id'),
	-- expressions
	('id % 7, -id'), ('lower(u) COLLATE "C", id'), ('left(t, 20) COLLATE "C" DESC, id'), ('f * 2 + s, id'), ('i IS NULL, f IS NULL, id'),
	('gs.add_one(i), id'), ('coalesce(f, -1) DESC, id'), ('abs(i), abs(i - 3), id'), ('n + i, id'), ('(u || t) COLLATE "C", id'),
	('CASE WHEN b THEN s ELSE i END, id'), ('id::text COLLATE "C"'), ('id::numeric / 3 DESC'), ('i::gs.small, id'), ('u::gs.word, id'),
	('u::varchar(1) COLLATE "C", id'), ('u::char(3) COLLATE "C", id'), ('u::name, id'), ('(SELECT 1), id'), ('1 + 1, id');

SELECT * FROM no_plan();

SELECT is(gs.compare('SELECT id FROM gs.multi ORDER BY ' || words), 'same', 'ORDER BY ' || words)
FROM gs.order_by ORDER BY ordinal;

-- the same with whole rows, and under a subquery
SELECT is(gs.compare('SELECT * FROM gs.multi ORDER BY ' || words), 'same', 'whole rows by ' || words)
FROM gs.order_by WHERE ordinal IN (4, 11, 23, 24) ORDER BY ordinal;
SELECT is(gs.forced_digest('SELECT * FROM gs.multi ORDER BY ' || words), gs.native_digest('SELECT * FROM gs.multi ORDER BY ' || words),
		  'subquery by ' || words)
FROM gs.order_by WHERE ordinal IN (4, 11, 23, 24) ORDER BY ordinal;

-- ties of all columns left open: what is compared are the sort columns alone
SELECT is(gs.compare('SELECT b, s, t FROM gs.multi ORDER BY t, s DESC, b'), 'same', 'ties on three columns');
SELECT is(gs.compare('SELECT n, u FROM gs.multi ORDER BY n DESC, u'), 'same', 'ties on two inexact columns');
SELECT is(gs.compare('SELECT 1 FROM gs.multi WHERE b ORDER BY t'), 'same', 'no column of the sort in the result');

-- more columns than a key of the largest size can hold all of
SELECT is(gs.compare_results('SELECT id FROM gs.multi ORDER BY ' ||
							 (SELECT string_agg(format('(l + %s) %% %s', j, j + 2), ', ') FROM generate_series(1, 60) j) || ', id'),
		  'same', 'sixty columns');

SELECT * FROM finish();
