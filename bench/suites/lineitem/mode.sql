SELECT mode() WITHIN GROUP (ORDER BY l_partkey) FROM lineitem;
