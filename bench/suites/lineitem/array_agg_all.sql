SELECT cardinality(array_agg(l_partkey ORDER BY l_shipdate, l_orderkey, l_linenumber)) FROM lineitem;
