SELECT count(*), sum(cardinality(p)), max(p[1]) FROM (SELECT l_suppkey, array_agg(l_partkey ORDER BY l_shipdate, l_orderkey, l_linenumber) AS p FROM lineitem GROUP BY l_suppkey) a;
