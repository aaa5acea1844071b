SELECT count(DISTINCT l_partkey), count(DISTINCT l_suppkey), count(*), sum(l_quantity) FROM lineitem;
