SELECT count(l), min(l), sum(l) FROM (SELECT lag(l_extendedprice) OVER (ORDER BY l_shipdate, l_orderkey, l_linenumber) AS l FROM lineitem) w;
