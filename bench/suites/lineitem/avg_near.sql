SELECT max(a), min(a) FROM (SELECT avg(l_quantity) OVER (ORDER BY l_shipdate, l_orderkey, l_linenumber ROWS 100 PRECEDING) AS a FROM lineitem) w;
