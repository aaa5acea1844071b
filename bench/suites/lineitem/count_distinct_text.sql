SELECT count(DISTINCT l_comment) FROM lineitem;
