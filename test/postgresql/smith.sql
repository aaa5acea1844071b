-- smith.sql - views that sort, for sqlsmith, which itself makes windows, DISTINCT and merge joins only.  For
-- script/test core, in the database of the regression suite.
CREATE SCHEMA smith;
SET search_path = smith, public;
CREATE VIEW sorted AS SELECT * FROM tenk1 ORDER BY string4, ten DESC, unique1;
CREATE VIEW first_rows AS SELECT * FROM tenk1 ORDER BY stringu1, unique2 LIMIT 100;
CREATE VIEW later_rows AS SELECT * FROM onek ORDER BY hundred DESC, unique1 OFFSET 10 FETCH FIRST 50 ROWS WITH TIES;
CREATE VIEW distinct_rows AS SELECT DISTINCT ten, hundred, string4 FROM tenk1;
CREATE VIEW distinct_on AS SELECT DISTINCT ON (hundred, ten) * FROM tenk1 ORDER BY hundred, ten, unique1 DESC;
CREATE VIEW groups AS
	SELECT ten, hundred, count(*) AS n, sum(unique1) AS s, avg(unique1) AS a, min(stringu1) AS l, max(stringu2) AS g
	FROM tenk1 GROUP BY ten, hundred;
CREATE VIEW ordered_aggregates AS
	SELECT ten, string_agg(stringu1, ',' ORDER BY unique1) AS joined,
		   array_agg(unique2 ORDER BY stringu1, unique1) AS all_of,
		   count(DISTINCT hundred) AS n, sum(DISTINCT thousand) AS s, avg(DISTINCT thousand) AS a,
		   sum(two) FILTER (WHERE even > 10) AS f
	FROM onek GROUP BY ten;
CREATE VIEW all_rows AS
	SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY unique1) AS middle,
		   percentile_disc(0.25) WITHIN GROUP (ORDER BY stringu1) AS quarter,
		   mode() WITHIN GROUP (ORDER BY hundred) AS often, count(DISTINCT thousand) AS n, min(stringu2) AS l
	FROM tenk1;
CREATE VIEW places AS
	SELECT string4, rank(5) WITHIN GROUP (ORDER BY hundred) AS r, percent_rank(5) WITHIN GROUP (ORDER BY hundred) AS p,
		   sum(ten) AS s, avg(ten) AS a
	FROM tenk1 GROUP BY string4;
CREATE VIEW place_of_all AS
	SELECT percent_rank(5) WITHIN GROUP (ORDER BY hundred) AS p, cume_dist(7) WITHIN GROUP (ORDER BY ten) AS c,
		   sum(ten) AS s, avg(ten) AS a
	FROM tenk1;
CREATE VIEW shared_states AS
	SELECT percent_rank(5) WITHIN GROUP (ORDER BY hundred) AS p, cume_dist(5) WITHIN GROUP (ORDER BY hundred) AS c,
		   percentile_cont(0.1) WITHIN GROUP (ORDER BY hundred) AS tenth,
		   percentile_cont(0.9) WITHIN GROUP (ORDER BY hundred) AS nine_tenths, sum(ten) AS s, avg(ten) AS a
	FROM tenk1;
CREATE VIEW shared_states_distinct AS SELECT sum(DISTINCT hundred) AS s, avg(DISTINCT hundred) AS a FROM tenk1;
CREATE VIEW rolled_up AS
	SELECT two, ten, string4, grouping(two, ten) AS g, count(*) AS n, sum(unique1) AS s
	FROM tenk1 GROUP BY ROLLUP (two, ten, string4);
CREATE VIEW cubes AS
	SELECT two, four, 0 AS zero, count(*) + 0 AS n, coalesce(sum(ten), 0) AS s
	FROM tenk1 GROUP BY CUBE (two, four, 3) HAVING sum(ten) > 0;
CREATE VIEW sets AS
	SELECT hundred, string4, max(stringu1) AS g, array_agg(unique1 ORDER BY unique1) AS all_of
	FROM onek GROUP BY GROUPING SETS ((hundred), (string4), (hundred, string4), (), ());
CREATE VIEW windows AS
	SELECT unique1, ten, rank() OVER by_ten AS r, lag(unique1) OVER by_ten AS l, ntile(4) OVER (ORDER BY stringu1) AS q,
		   sum(unique2) OVER (PARTITION BY hundred ORDER BY unique1 ROWS 3 PRECEDING) AS s
	FROM tenk1 WINDOW by_ten AS (PARTITION BY ten ORDER BY hundred, unique1);
CREATE VIEW windows_over_groups AS
	SELECT ten, string4, sum(unique1) AS s, rank() OVER (PARTITION BY ten ORDER BY sum(unique1) DESC) AS r,
		   sum(count(*)) OVER (ORDER BY string4, ten) AS n
	FROM tenk1 GROUP BY ten, string4;
CREATE VIEW groups_over_windows AS
	SELECT n, count(*), max(unique1) AS g FROM
		(SELECT unique1, row_number() OVER (PARTITION BY hundred ORDER BY unique1) AS n FROM tenk1) AS numbered
	GROUP BY n;
CREATE VIEW united AS SELECT unique1, stringu1 FROM onek UNION SELECT unique2, stringu2 FROM tenk1 ORDER BY 2, 1;
CREATE VIEW both_of AS SELECT hundred, ten FROM tenk1 INTERSECT ALL SELECT hundred, ten FROM onek;
CREATE VIEW rest_of AS SELECT unique1, string4 FROM tenk1 EXCEPT SELECT unique1, string4 FROM onek;
CREATE VIEW merged AS
	SELECT a.unique1, b.stringu1, a.hundred FROM tenk1 AS a FULL JOIN onek AS b ON a.unique1 = b.unique2;
CREATE VIEW first_of_each AS
	SELECT o.ten, o.unique1, l.stringu1 FROM onek AS o,
		LATERAL (SELECT * FROM tenk1 AS t WHERE t.hundred = o.hundred ORDER BY stringu1 LIMIT 3) AS l;
CREATE VIEW guarded WITH (security_barrier) AS SELECT * FROM onek WHERE ten > 3 ORDER BY stringu2, unique1;
CREATE VIEW kept AS WITH k AS MATERIALIZED (SELECT * FROM tenk2 ORDER BY fivethous, unique1) SELECT * FROM k;
CREATE MATERIALIZED VIEW stored AS SELECT * FROM groups ORDER BY s;
GRANT USAGE ON SCHEMA smith TO PUBLIC;
