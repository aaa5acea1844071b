SELECT max(n), sum(n * (l_orderkey % 7)) FROM (SELECT l_orderkey, row_number() OVER (ORDER BY l_extendedprice, l_orderkey, l_linenumber) AS n FROM lineitem) w;
