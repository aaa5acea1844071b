SELECT count(*), sum(c), max(q) FROM (SELECT l_shipmode, l_returnflag, l_partkey, count(*) AS c, sum(l_quantity) AS q FROM lineitem GROUP BY ROLLUP (l_shipmode, l_returnflag, l_partkey)) r;
