SELECT count(DISTINCT l_partkey) FROM lineitem;
