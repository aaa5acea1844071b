SELECT count(*), max(s), sum(s) FROM (SELECT sum(l_quantity) OVER (ORDER BY l_shipdate, l_orderkey, l_linenumber) AS s FROM lineitem) w;
